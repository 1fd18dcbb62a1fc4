"""A SQL text as tokens, with its brackets, operands and calls of functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.sql.text.tokens import Token, UnclosedError, tokenize

_OPENING = {"(": ")", "[": "]", "{": "}"}
_NO_OPERANDS = frozenset({
    "ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CROSS", "DESC", "DISTINCT", "DIV",
    "ELSE", "EXCEPT", "FILTER", "FROM", "FULL", "GROUP", "HAVING", "ILIKE", "IN", "INNER",
    "INTERSECT", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NOT", "ON", "OR", "ORDER",
    "OVER", "PARTITION", "QUALIFY", "RIGHT", "RLIKE", "SELECT", "SIMILAR", "THEN", "UNION", "USING",
    "VALUES", "WHEN", "WHERE", "WITH",
})  # fmt: skip
"""Keywords that end before an operand."""


@dataclass(frozen=True)
class Call:
    """A call `name(arguments)`. The numbers are indexes of tokens."""

    name: int
    opening: int
    closing: int
    arguments: tuple[tuple[int, int], ...]
    """The first token of each argument, and the token after it."""


class Sql:
    """The tokens of a text. Raises UnclosedError at a quote that is not closed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tuple(tokenize(text))
        self.closing = self._pair_brackets()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_closed(self) -> bool:
        """Whether each opening bracket has its closing one."""
        opening = (
            i
            for i, token in enumerate(self.tokens)
            if token.kind == "sign" and token.value in _OPENING
        )
        return all(index in self.closing for index in opening)

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index]

    def word(self, index: int) -> str:
        """Returns a word in upper case; empty for other tokens and outside of the text."""
        return self.tokens[index].word if 0 <= index < len(self.tokens) else ""

    def is_sign(self, index: int, sign: str) -> bool:
        """Returns whether a token exists and is this sign."""
        return 0 <= index < len(self.tokens) and self.tokens[index].is_sign(sign)

    def words(self, index: int, *words: str) -> bool:
        """Returns whether the tokens from `index` are these words."""
        return all(self.word(index + number) == word for number, word in enumerate(words))

    def slice(self, first: int, last: int) -> str:
        """Returns the text of tokens, without `last`; empty without a token."""
        if first >= min(last, len(self.tokens)):
            return ""
        return self.text[self.tokens[first].start : self.tokens[last - 1].end]

    def calls(self, *names: str, first: int = 0, last: int | None = None) -> Iterator[Call]:
        """Yields the calls of functions, of all functions without names (in lower case).

        A call with an empty argument, as `f(a,,b)`, is none: Spark reports the syntax error.
        """
        for index in range(first, (len(self.tokens) if last is None else last) - 1):
            token = self.tokens[index]
            if token.kind != "word" or not self.is_sign(index + 1, "("):
                continue
            if names and token.value.lower() not in names:
                continue
            closing = self.closing.get(index + 1)
            if closing is not None and not self.is_sign(index - 1, "."):
                arguments = tuple(self.split(index + 2, closing, ","))
                if all(start < end for start, end in arguments):
                    yield Call(index, index + 1, closing, arguments)

    def split(self, first: int, last: int, sign: str) -> Iterator[tuple[int, int]]:
        """Yields the parts between the signs of the same level; none for no tokens."""
        start = index = first
        while index < last:
            if self.tokens[index].is_sign(sign):
                yield start, index
                start = index + 1
            index = self.closing.get(index, index) + 1
        if first < last:
            yield start, last

    def operand_before(self, index: int) -> int | None:
        """Returns the first token of the operand that ends before `index`, or None.

        An operand is a name, call, literal or a part in brackets, with `.name`, `[...]`, `::type`.
        """
        position = index - 1
        if position < 0:
            return None
        while True:
            token = self.tokens[position]
            if token.kind == "sign" and token.value in _OPENING.values():
                opening = self._opening.get(position)
                if opening is None:
                    return None
                position = opening
                if token.value == "]" and not self._ends_operand(position - 1):
                    return position
                if self._is_callee(position - 1) or token.value == "]":
                    position -= 1
                    if token.value == "]":
                        continue
            elif token.kind == "sign" or token.word in _NO_OPERANDS:
                return None
            if position >= 2 and (
                self.tokens[position - 1].is_sign(".") or self.tokens[position - 1].is_sign("::")
            ):
                position -= 2
                continue
            return position

    def operand_after(self, index: int) -> int | None:
        """Returns the token after the operand that begins at `index`, or None."""
        if index >= len(self.tokens):
            return None
        position = index
        if self.tokens[position].is_sign("-"):
            position += 1
        if position >= len(self.tokens):
            return None
        token = self.tokens[position]
        if token.is_sign("("):
            position = self.closing.get(position, position) + 1
        elif token.kind == "sign" or token.word in _NO_OPERANDS:
            return None
        else:
            position += 1
        while position < len(self.tokens):
            token = self.tokens[position]
            if (token.is_sign("(") and position == index + 1) or token.is_sign("["):
                position = self.closing.get(position, position) + 1
            elif token.is_sign(".") or token.is_sign("::"):
                position += 2
            else:
                break
        return min(position, len(self.tokens))

    def enclosing(self, index: int) -> int | None:
        """Returns the opening bracket around a token, or None."""
        found = None
        for opening, closing in self.closing.items():
            if opening < index < closing and (found is None or opening > found):
                found = opening
        return found

    def _ends_operand(self, index: int) -> bool:
        if index < 0 or self.tokens[index].word in _NO_OPERANDS:
            return False
        return self.tokens[index].kind != "sign" or self.tokens[index].value in _OPENING.values()

    def _is_callee(self, index: int) -> bool:
        return index >= 0 and self.tokens[index].is_name and self.word(index) not in _NO_OPERANDS

    def _pair_brackets(self) -> dict[int, int]:
        pairs: dict[int, int] = {}
        open_: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.value in _OPENING:
                open_.append(index)
            elif open_ and token.value == _OPENING[self.tokens[open_[-1]].value]:
                pairs[open_.pop()] = index
        self._opening = {closing: opening for opening, closing in pairs.items()}
        return pairs


def read_sql(text: str) -> Sql | None:
    """Returns the tokens of a text, or None if a quote is not closed."""
    try:
        return Sql(text)
    except UnclosedError:
        return None
