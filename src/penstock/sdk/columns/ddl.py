"""Spark's DDL for columns, parsed without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.names import check_distinct

_SIMPLE = {
    "boolean": pa.bool_(), "bool": pa.bool_(),
    "byte": pa.int8(), "tinyint": pa.int8(),
    "short": pa.int16(), "smallint": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(),
    "long": pa.int64(), "bigint": pa.int64(),
    "float": pa.float32(), "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(), "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}  # fmt: skip
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[<>(),:])")
_MAX_PRECISION = 38
_MAX_DIGITS = 6
"""The most digits of a fraction of a second."""
_NAMES = sorted({*(_SIMPLE), "decimal", "varchar", "char", "array", "map", "struct", "variant"})
_VARIANT = pa.large_string()
"""The type of VARIANT between a type and its field. No other type of the DDL is LARGE_STRING."""


def arrow_schema(columns: str | Mapping[str, str]) -> pa.Schema:
    """Parses `id LONG NOT NULL, tags ARRAY<STRING>` or a map of name to type.

    Returns Spark's types as Arrow types. VARIANT is a STRING that is marked as JSON.
    Raises PlanError.
    """
    try:
        fields = _fields(columns)
    except RecursionError:
        raise PlanError(
            "invalid schema: the types are nested too deeply",
            code="invalid-schema",
            hint="Declare the inner columns as STRING.",
        ) from None
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise PlanError(f'column "{field.name}" is declared twice', code="duplicate-column")
        seen.add(field.name.lower())
    check_distinct(fields)
    return pa.schema(fields)


def _fields(columns: str | Mapping[str, str]) -> list[pa.Field]:
    if isinstance(columns, Mapping):
        return [_Reader(f"`{name}` {type_}").single_field() for name, type_ in columns.items()]
    return _Reader(columns).fields()


def _field(name: str, type_: pa.DataType, nullable: bool = True) -> pa.Field:
    """Returns a field; of type VARIANT a field of JSON text."""
    field = pa.field(name, type_, nullable)
    return json_field(field) if type_ == _VARIANT else field


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if not match:
                raise self._error(f"unexpected {text[position:].strip()[:20]!r}")
            self.tokens.append(match[1])
            position = match.end()

    def fields(self) -> list[pa.Field]:
        fields = [self.field()]
        while self._take(","):
            fields.append(self.field())
        if self.tokens:
            raise self._error(f"unexpected {self.tokens[0]!r}")
        return fields

    def single_field(self) -> pa.Field:
        field = self.field()
        if self.tokens:
            raise self._error(f"unexpected {self.tokens[0]!r}")
        return field

    def field(self, separator: bool = False) -> pa.Field:
        name = self._name()
        if separator:
            self._take(":")
        if not self.tokens or self.tokens[0] in ",)>":
            raise PlanError(
                f'column "{name}" has no type', code="invalid-schema",
                hint=f"Write {name} STRING, or another type.",
            )  # fmt: skip
        type_ = self._type()
        nullable = True
        if self._take("not"):
            self._expect("null")
            nullable = False
        if self._take("comment"):
            self._next("a comment")
        return _field(name, type_, nullable)

    def _type(self) -> pa.DataType:
        word = self._next("a type").lower()
        if word == "variant":
            return _VARIANT
        if word.startswith("timestamp") and self._take("("):
            self._check_digits(word)
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word in ("varchar", "char"):
            self._numbers((0, 0))
            return pa.string()
        if word == "array":
            self._expect("<")
            item = self._type()
            self._expect(">")
            return pa.list_(_field("element", item))
        if word == "map":
            self._expect("<")
            key = self._type()
            if key == _VARIANT:
                raise self._error("expected keys of another type than VARIANT")
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, _field("value", value))
        if word == "struct":
            self._expect("<")
            fields = [self.field(separator=True)]
            while self._take(","):
                fields.append(self.field(separator=True))
            self._expect(">")
            return pa.struct(fields)
        hint = "Declare the column as STRING." if word == "time" else did_you_mean(word, _NAMES)
        raise PlanError(f'there is no type "{word}"', code="unknown-type", hint=hint)

    def _check_digits(self, word: str) -> None:
        digits = self._next("a number of digits")
        self._expect(")")
        if not digits.isdecimal() or int(digits) > _MAX_DIGITS:
            raise PlanError(
                f"the type {word.upper()}({digits}) has nanoseconds, and times have microseconds",
                code="unsupported-type", hint=f"Write {word.upper()}, or BIGINT for nanoseconds.",
            )  # fmt: skip

    def _decimal(self) -> pa.DataType:
        precision, scale = self._numbers((10, 0))
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            raise PlanError(
                f"invalid schema: expected a decimal of 1 to {_MAX_PRECISION} digits with at most "
                f"as many decimal places, found DECIMAL({precision},{scale})",
                code="invalid-schema",
                hint="Write a smaller type, as in DECIMAL(38,9), or DOUBLE.",
            )
        return pa.decimal128(precision, scale)

    def _numbers(self, default: tuple[int, int]) -> tuple[int, int]:
        if not self._take("("):
            return default
        first = self._number()
        second = self._number() if self._take(",") else 0
        self._expect(")")
        return first, second

    def _number(self) -> int:
        token = self._next("a number")
        if not re.fullmatch(r"[0-9]{1,9}", token):
            raise self._error(f"expected a number, found {token[:20]!r}")
        return int(token)

    def _name(self) -> str:
        token = self._next("a column name")
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not re.match(r"[A-Za-z_0-9]", token):
            raise self._error(f"unexpected {token!r}")
        return token

    def _next(self, expected: str) -> str:
        if not self.tokens:
            raise self._error(f"expected {expected} at the end")
        return self.tokens.pop(0)

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0].lower() == token:
            self.tokens.pop(0)
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._error(f'expected "{token}"')

    def _error(self, problem: str) -> PlanError:
        return PlanError(
            f"invalid schema: {problem}",
            code="invalid-schema",
            hint="Declare the columns, as in id LONG, name STRING, at TIMESTAMP.",
        )
