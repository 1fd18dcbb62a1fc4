"""Columns as users declare them: Spark's DDL, without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean

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
_NAMES = sorted({*(_SIMPLE), "decimal", "varchar", "char", "array", "map", "struct"})


def arrow_schema(columns: str | Mapping[str, str]) -> pa.Schema:
    """The schema of `id LONG NOT NULL, tags ARRAY<STRING>` or of a map of name to type.

    The types are Spark's, in the Arrow form that Spark gives them. Raises PlanError.
    """
    if isinstance(columns, Mapping):
        fields = [_Reader(f"`{name}` {type_}").field() for name, type_ in columns.items()]
    else:
        fields = _Reader(columns).fields()
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise PlanError(f'column "{field.name}" is there twice', code="duplicate-column")
        seen.add(field.name.lower())
    return pa.schema(fields)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if not match:
                raise self._error(f"at {text[position:].strip()[:20]!r}")
            self.tokens.append(match[1])
            position = match.end()

    def fields(self) -> list[pa.Field]:
        fields = [self.field()]
        while self._take(","):
            fields.append(self.field())
        if self.tokens:
            raise self._error(f"at {self.tokens[0]!r}")
        return fields

    def field(self, separator: bool = False) -> pa.Field:
        name = self._name()
        if separator:
            self._take(":")
        if not self.tokens or self.tokens[0] in ",)>":
            raise PlanError(
                f'column "{name}" has no type', code="invalid-schema",
                hint=f"write it as in {name} STRING",
            )  # fmt: skip
        type_ = self._type()
        nullable = True
        if self._take("not"):
            self._expect("null")
            nullable = False
        if self._take("comment"):
            self._next("a comment")
        return pa.field(name, type_, nullable)

    def _type(self) -> pa.DataType:
        word = self._next("a type").lower()
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in ("decimal", "dec", "numeric"):
            precision, scale = self._numbers((10, 0))
            return pa.decimal128(precision, scale)
        if word in ("varchar", "char"):
            self._numbers((0, 0))
            return pa.string()
        if word == "array":
            self._expect("<")
            item = self._type()
            self._expect(">")
            return pa.list_(pa.field("element", item))
        if word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, value)
        if word == "struct":
            self._expect("<")
            fields = [self.field(separator=True)]
            while self._take(","):
                fields.append(self.field(separator=True))
            self._expect(">")
            return pa.struct(fields)
        raise PlanError(
            f'there is no type "{word}"', code="unknown-type", hint=did_you_mean(word, _NAMES)
        )

    def _numbers(self, default: tuple[int, int]) -> tuple[int, int]:
        if not self._take("("):
            return default
        first = int(self._next("a number"))
        second = int(self._next("a number")) if self._take(",") else 0
        self._expect(")")
        return first, second

    def _name(self) -> str:
        token = self._next("a column's name")
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not re.match(r"[A-Za-z_0-9]", token):
            raise self._error(f"at {token!r}")
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

    def _error(self, where: str) -> PlanError:
        return PlanError(
            f"the columns are not clear: {where}",
            code="invalid-schema",
            hint="write them as in id LONG, name STRING, at TIMESTAMP",
        )
