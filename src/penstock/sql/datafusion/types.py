"""Names of types of DataFusion and PostgreSQL, as types of Spark."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^']|'')*'|\w+|\S")
_WORD = re.compile(r"\w")
UNSIGNED = {
    "TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "BIGINT": "DECIMAL(20, 0)",
}  # fmt: skip
"""Signed types that hold all values of an unsigned type."""
_INTEGERS = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT2": "SMALLINT", "INT": "INT",
    "INTEGER": "INT", "INT4": "INT", "BIGINT": "BIGINT", "INT8": "BIGINT",
}  # fmt: skip
_NAMES = {
    "BOOL": "BOOLEAN", "BYTEA": "BINARY", "DATETIME": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP",
    "DOUBLE PRECISION": "DOUBLE", "FLOAT8": "DOUBLE", "FLOAT": "FLOAT", "FLOAT4": "FLOAT",
    **dict.fromkeys(
        ("TEXT", "STRING", "JSON", "VARCHAR", "CHAR", "CHARACTER", "CHARACTER VARYING"), "STRING"
    ),
}  # fmt: skip
"""Types whose precision or length has no effect. A text has any length."""
_DECIMALS = ("DECIMAL", "NUMERIC", "DEC")


def translate_type(text: str, decimal: str | None = None) -> str:
    """Returns a type in Spark's names; an invalid type, and a type of Spark, as it is.

    `decimal` is the type of decimals without a precision.
    """
    tokens = _Types(_TOKEN.findall(text), decimal)
    try:
        translated = tokens.read_type()
    except IndexError:
        return text
    same = translated.replace(" ", "").upper() == re.sub(r"\s", "", text).upper()
    return text if same or not tokens.ended else translated


class _Types:
    """A reader of types. Raises IndexError at the end of the tokens."""

    def __init__(self, tokens: list[str], decimal: str | None) -> None:
        self._tokens, self._decimal, self._next = tokens, decimal, 0

    @property
    def ended(self) -> bool:
        return self._next == len(self._tokens)

    def read_type(self) -> str:
        """Reads a type, and the brackets of arrays after the type."""
        word = self._tokens[self._next].upper()
        if word in ("STRUCT", "ARRAY", "MAP") and self._tokens[self._next + 1] == "<":
            type_ = self._read_nested(word)
        else:
            type_ = self._read_simple()
        while self._at("["):
            if self._tokens[self._next + 1] != "]":
                raise IndexError
            self._next += 2
            type_ = f"ARRAY<{type_}>"
        return type_

    def _read_nested(self, word: str) -> str:
        self._next += 2
        items = [self._read_field() if word == "STRUCT" else self.read_type()]
        while self._at(","):
            self._next += 1
            items.append(self._read_field() if word == "STRUCT" else self.read_type())
        if not self._at(">"):
            raise IndexError
        self._next += 1
        return f"{word}<{', '.join(items)}>"

    def _read_field(self) -> str:
        """Reads the name, the type and the properties of a field of a struct."""
        name = self._take()
        if self._at(":"):
            self._next += 1
            name += ":"
        parts = [name, self.read_type()]
        while not self._at(",") and not self._at(">"):
            parts.append(self._take())
        return " ".join(parts)

    def _read_simple(self) -> str:
        words = []
        while not self.ended and _is_word(self._tokens[self._next]) and not self._at_property():
            words.append(self._take())
        arguments = ""
        if self._at("("):
            end = self._tokens.index(")", self._next) + 1 if ")" in self._tokens else -1
            if end < self._next:
                raise IndexError
            arguments = "".join(self._tokens[self._next : end]).replace(",", ", ")
            self._next = end
        if self._at("UNSIGNED"):
            words.append(self._take())
        return self._translated(" ".join(words), arguments)

    def _translated(self, name: str, arguments: str) -> str:
        upper = name.upper()
        base = _INTEGERS.get(upper.removesuffix(" UNSIGNED"))
        if base is not None:
            return UNSIGNED[base] if upper.endswith(" UNSIGNED") else base
        if upper in _DECIMALS and self._decimal and not arguments:
            return self._decimal
        return _NAMES.get(upper, f"{name}{arguments}")

    def _at_property(self) -> bool:
        return self._at("NOT") or self._at("COMMENT")

    def _at(self, token: str) -> bool:
        return not self.ended and self._tokens[self._next].upper() == token

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]


def _is_word(token: str) -> bool:
    return bool(_WORD.match(token))
