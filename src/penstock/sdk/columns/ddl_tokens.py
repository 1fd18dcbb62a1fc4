"""Tokens of Spark's DDL for columns, and errors at their place in the text."""

from __future__ import annotations

import re

from penstock.core.errors import OptionError, PlanError
from penstock.core.names import quote_name
from penstock.core.text import line_and_column

_TOKEN = re.compile(
    r"""\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|\S)"""
)


class DdlTokens:
    """The tokens that are left of a text. `depth` is that of the brackets before them.

    With a `key` the text is the name, which is the key in a map, and the type of a single column.
    `errors` receives the errors after which reading continues.
    """

    def __init__(self, text: str, errors: list[PlanError], key: str | None = None) -> None:
        self.text, self.errors, self.key = text, errors, key
        self.tokens: list[str] = []
        self.starts: list[int] = []
        self.depth = 0
        self._last = 0
        for match in _TOKEN.finditer(text):
            self.tokens.append(match[1])
            self.starts.append(match.start(1))

    @property
    def start(self) -> int:
        """The index of the next token in the text; 0 without one."""
        return self.starts[0] if self.starts else 0

    def next(self, expected: str) -> str:
        """Removes and returns the next token. Raises PlanError at the end."""
        if not self.tokens:
            raise self.error(f"expected {expected} at the end")
        self._last = self.starts.pop(0)
        self.depth += nesting(self.tokens[0])
        return self.tokens.pop(0)

    def take(self, token: str) -> bool:
        """Removes the next token if it is this one, and returns whether it was."""
        if self.tokens and self.tokens[0].lower() == token:
            self.next(token)
            return True
        return False

    def expect(self, token: str) -> None:
        """Removes the next token. Raises PlanError for another one."""
        if not self.take(token):
            raise self.error(f'expected "{token}"')

    def add_error(self, start: int, marked: str, message: str, code: str, hint: str | None) -> None:
        """Adds an error of a column, at an index of the text."""
        place, length = self._place(start), len(marked)
        self.errors.append(
            OptionError.of(
                *self._option, message=message, code=code, hint=hint,
                line_and_column=place, length=length,
            )
        )  # fmt: skip

    def error(self, problem: str, start: int | None = None) -> PlanError:
        """Returns an error at an index of the text; at the next token by default."""
        if start is None:
            start = self.starts[0] if self.starts else self._last
        return OptionError.of(
            *self._option, message=f"invalid schema: {problem}", code="invalid-schema",
            hint="Declare the columns, as in id LONG, name STRING, at TIMESTAMP.",
            line_and_column=self._place(start),
        )  # fmt: skip

    @property
    def _option(self) -> tuple[str, ...]:
        return () if self.key is None else (self.key,)

    def _place(self, start: int) -> tuple[int, int]:
        """Returns the line and the column of an index in the text of the user."""
        before = "" if self.key is None else f"{quote_name(self.key)} "
        return line_and_column(self.text.removeprefix(before), max(start - len(before), 0))


def nesting(token: str) -> int:
    """Returns the change of the depth of brackets by a token."""
    return {"<": 1, "(": 1, ">": -1, ")": -1}.get(token, 0)
