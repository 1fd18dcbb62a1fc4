"""A reader of one statement of a SQL script, token by token."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import shorten
from penstock.spec.script.tokens import Text, in_backticks, unclosed_error
from penstock.spec.tree.nodes import File
from penstock.sql.datafusion.types import translate_type
from penstock.sql.text.tokens import Token

T = TypeVar("T")
_NANOSECONDS = re.compile(r"\btimestamp(?:_[ln]tz)?\s*\(\s*[7-9]\s*\)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_BRACKETS = {"(": ")", "[": "]"}
_TYPE_BRACKETS = {**_BRACKETS, "<": ">"}


class TokenReader:
    """A reader of the tokens of one statement, from the first to the last."""

    def __init__(self, file: File, tokens: Sequence[Token]) -> None:
        self.file, self._tokens, self._next = file, tokens, 0
        self.errors: list[SpecError] = []
        """The errors of items after which reading went on."""

    @property
    def ended(self) -> bool:
        """Whether no token remains."""
        return self._next >= len(self._tokens)

    def at(self, *words: str) -> bool:
        """Returns whether the next tokens are these keywords or signs."""
        following = self._tokens[self._next : self._next + len(words)]
        return len(following) == len(words) and all(map(_is, following, words))

    def accept(self, *words: str) -> bool:
        """Reads these keywords or signs if they are next. Returns whether they were."""
        found = self.at(*words)
        self._next += len(words) if found else 0
        return found

    def expect(self, *words: str) -> None:
        """Reads keywords or signs. Raises SpecError."""
        for word in words:
            if not self.accept(word):
                raise self.error(word)

    def word(self) -> str:
        """Returns the next keyword in upper case without reading it; empty for other tokens."""
        if self.ended or self._token.is_quoted:
            return ""
        return self._token.value.upper()

    def first_word(self) -> str:
        """Returns the first keyword of the statement in upper case; empty for other tokens."""
        return "" if self._tokens[0].is_quoted else self._tokens[0].value.upper()

    def name(self, expected: str) -> Text:
        """Reads an identifier, plain or quoted. Raises SpecError with `expected`."""
        if self.ended:
            raise self.error(expected)
        token = self._token
        is_quoted = token.is_quoted and self.file.text[token.start] in ('"', "`")
        if not is_quoted and (token.is_quoted or not _WORD.match(token.value)):
            raise self.error(expected)
        return self._read()

    def string(self, expected: str) -> Text:
        """Reads a quoted text. Raises SpecError with `expected`."""
        if not self.is_string():
            raise self.error(expected)
        return self._read()

    def is_string(self) -> bool:
        """Returns whether the next token is a quoted text."""
        return not self.ended and self._token.kind == "string"

    def is_number(self) -> bool:
        """Returns whether the next token is a number without a suffix, as in 10L."""
        is_number = not self.ended and self._token.kind == "number"
        return is_number and not self._token.value[-1].isalpha()

    def any(self) -> Text:
        """Reads the next token, whatever it is."""
        return self._read()

    def names(self, expected: str) -> list[Text]:
        """Reads identifiers between parentheses. Raises SpecError."""
        return self.items(lambda: self.name(expected))

    def items(self, read: Callable[[], T]) -> list[T]:
        """Reads items between parentheses, separated by commas. Raises SpecError."""
        self.expect("(")
        items = [read()]
        while self.accept(","):
            items.append(read())
        self.expect(")")
        return items

    def valid_items(self, read: Callable[[], T]) -> list[T]:
        """Reads items as `items` does, without those that have errors. Raises SpecError.

        Adds their errors to `errors`.
        """
        return [item for item in self.items(lambda: self._item_or_none(read)) if item is not None]

    def _item_or_none(self, read: Callable[[], T]) -> T | None:
        start = self._next
        try:
            item = read()
            if not self.at(",") and not self.at(")"):
                raise self.error("a comma or )")
        except SpecError as error:
            if not self._skip_item(start, _TYPE_BRACKETS) and not self._skip_item(start, _BRACKETS):
                raise
            self.errors.append(error)
            return None
        return item

    def _skip_item(self, start: int, brackets: Mapping[str, str]) -> bool:
        """Skips the tokens of an item. Returns whether a comma or ) follows."""
        self._next = start
        if not self.at(",") and not self.at(")"):
            with suppress(SpecError):
                self._balanced(brackets, (",",), "an item")
        return self.at(",") or self.at(")")

    def expression(self) -> Text:
        """Reads an expression up to the bracket that closes it. Raises SpecError."""
        return self._balanced(_BRACKETS, (), "an expression")

    def item(self, expected: str) -> tuple[Text, TokenReader]:
        """Reads an item up to a comma or the bracket that closes it, and returns its reader.

        Raises SpecError.
        """
        first = self._next
        text = self._balanced(_BRACKETS, (",",), expected)
        return text, TokenReader(self.file, self._tokens[first : self._next])

    def type(self, following: Collection[str]) -> Text:
        """Reads a type up to one of the `following` keywords. Raises SpecError."""
        return self._balanced(_TYPE_BRACKETS, following, "the type of the column")

    def _balanced(
        self, brackets: Mapping[str, str], following: Collection[str], expected: str
    ) -> Text:
        first = self._next
        closing: list[tuple[str, Token]] = []
        while not self.ended:
            word = self.word()
            if not closing and (word in following or word in brackets.values()):
                break
            if word in brackets:
                closing.append((brackets[word], self._token))
            elif closing and word == closing[-1][0]:
                closing.pop()
            self._next += 1
        if first == self._next:
            raise self.error(expected)
        if closing and closing[0][0] == ">":
            raise unclosed_error(self.file, closing[0][1].start)
        return self._text(first, self._next)

    def rest(self, expected: str) -> Text:
        """Reads all remaining tokens. Raises SpecError if there are none."""
        first, self._next = self._next, len(self._tokens)
        if first == self._next:
            raise self.error(expected)
        return self._text(first, self._next)

    def end(self) -> None:
        """Checks that no token remains. Raises SpecError."""
        if not self.ended:
            raise self.error("the end of the statement or ;")

    def error(self, expected: str) -> SpecError:
        """Returns the error that `expected` is not next."""
        if self.ended:
            found, where = "the end of the statement", self._after
        else:
            text = self.file.text[self._token.start : self._token.end]
            found, where = shorten(text, 40), self._location(self._token)
        return SpecError(f"expected {expected}, found {found}", code="invalid-sql", where=where)

    def location(self, text: Text) -> Location:
        """Returns the location of a text."""
        return self.file.location(text.start, text.end)

    @property
    def start(self) -> Location:
        """The location of the first token."""
        return self._location(self._tokens[0])

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    @property
    def _after(self) -> Location:
        end = self._tokens[-1].end
        return self.file.location(end, end + 1)

    def _location(self, token: Token) -> Location:
        return self.file.location(token.start, token.end)

    def _read(self) -> Text:
        token = self._token
        self._next += 1
        margin = token.margin if token.is_quoted else 0
        return Text(token.value, token.start + margin, token.end - margin)

    def _text(self, first: int, last: int) -> Text:
        tokens = self._tokens[first:last]
        start, end = tokens[0].start, tokens[-1].end
        return Text(in_backticks(self.file, tokens, start, end), start, end)


def _is(token: Token, word: str) -> bool:
    return not token.is_quoted and token.value.upper() == word


def spark_type(reader: TokenReader, type_: Text) -> Text:
    """Returns the type of Spark for a type, which may be of another dialect. Raises SpecError."""
    if nanoseconds := _NANOSECONDS.search(type_.value):
        start = type_.start + nanoseconds.start()
        raise SpecError(
            f"the type {nanoseconds[0]} has nanoseconds, and times have microseconds",
            code="unsupported-type",
            where=reader.location(Text("", start, start + len(nanoseconds[0]))),
            hint="write TIMESTAMP(6), or BIGINT for a number of nanoseconds",
        )
    return type_._replace(value=translate_type(type_.value))
