"""Spark's DDL for columns, parsed without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import accumulate

import pyarrow as pa

from penstock.core.errors import PlanError, raise_all
from penstock.core.names import quote_name
from penstock.core.text import did_you_mean
from penstock.sdk.columns.ddl_tokens import DdlTokens, nesting
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
_MAX_PRECISION = 38
_MAX_DIGITS = 6
"""The most digits of a fraction of a second."""
_NAMES = sorted({*(_SIMPLE), "decimal", "varchar", "char", "array", "map", "struct", "variant"})
_VARIANT = pa.large_string()
"""The type of VARIANT between a type and its field. No other type of the DDL is LARGE_STRING."""

_STAND_IN = pa.string()
"""The type of a column whose type has an error."""


def arrow_schema(columns: str | Mapping[str, str]) -> pa.Schema:
    """Parses `id LONG NOT NULL, tags ARRAY<STRING>` or a map of name to type.

    Returns Spark's types as Arrow types. VARIANT is a STRING that is marked as JSON.
    Raises PlanError, or ValidationErrors with the errors of several columns. An error of a column
    is an OptionError with its place in the text; of a map with its key, and the place in its text.
    """
    fields: list[pa.Field] = []
    errors: list[PlanError] = []
    try:
        fields.extend(_fields(columns, errors))
    except RecursionError:
        raise PlanError(
            "invalid schema: the types are nested too deeply",
            code="invalid-schema",
            hint="Declare the inner columns as STRING.",
        ) from None
    except PlanError as error:
        errors.append(error)
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            errors.append(
                PlanError(f'column "{field.name}" is declared twice', code="duplicate-column")
            )
        seen.add(field.name.lower())
    raise_all(errors)
    check_distinct(fields)
    return pa.schema(fields)


def _fields(columns: str | Mapping[str, str], errors: list[PlanError]) -> Iterator[pa.Field]:
    """Yields the columns. Adds the errors after which reading continues to `errors`."""
    if isinstance(columns, Mapping):
        for name, type_ in columns.items():
            try:
                yield _Reader(f"{quote_name(name)} {type_}", errors, key=name).whole_field()
            except PlanError as error:
                errors.append(error)
    else:
        yield from _Reader(columns, errors).fields()


def _field(name: str, type_: pa.DataType, nullable: bool = True) -> pa.Field:
    """Returns a field; of type VARIANT a field of JSON text."""
    field = pa.field(name, type_, nullable)
    return json_field(field) if type_ == _VARIANT else field


class _Reader(DdlTokens):
    """A reader of columns. Adds the errors after which reading continues to `errors`."""

    def fields(self) -> Iterator[pa.Field]:
        """Yields the columns, without those that have errors in `errors`."""
        while True:
            self.depth = 0
            try:
                yield self.whole_field()
            except PlanError as error:
                self.errors.append(error)
                self._skip_field()
            if not self.take(","):
                break

    def whole_field(self) -> pa.Field:
        """Returns the next column, which is the only one if it has a key. Raises PlanError."""
        field = self.field()
        if self.tokens and (self.tokens[0] != "," or self.key is not None):
            raise self.error(f"unexpected {self.tokens[0]!r}")
        return field

    def _skip_field(self) -> None:
        """Skips the tokens of a column with an error up to the comma after it.

        That is the next comma if a bracket of the column is not closed.
        """
        depths = [*accumulate(map(nesting, self.tokens), initial=self.depth)]
        closed = next((index for index, depth in enumerate(depths) if depth <= 0), None)
        first, level = (0, self.depth) if closed is None else (closed, 0)
        commas = (
            index
            for index, token in enumerate(self.tokens)
            if index >= first and token == "," and depths[index] <= level
        )
        end = next(commas, len(self.tokens))
        del self.tokens[:end], self.starts[:end]

    def field(self, separator: bool = False) -> pa.Field:
        start = self.start
        name = self._name()
        if separator:
            self.take(":")
        if not self.tokens or self.tokens[0] in ",)>":
            self.add_error(
                start, name, f'column "{name}" has no type', "invalid-schema",
                f"Write {name} STRING, or another type.",
            )  # fmt: skip
            return _field(name, _STAND_IN)
        type_ = self._type()
        nullable = True
        if self.take("not"):
            self.expect("null")
            nullable = False
        if self.take("comment"):
            if not self.tokens or self.tokens[0][0] not in "'\"":
                raise self.error("expected a comment in quotes")
            self.next("a comment")
        return _field(name, type_, nullable)

    def _type(self) -> pa.DataType:
        start = self.start
        word = self.next("a type").lower()
        if not re.match(r"\w", word):
            raise self.error(f"expected a type, found {word!r}", start)
        if word == "variant":
            return _VARIANT
        if word.startswith("timestamp") and self.take("("):
            self._check_digits(word, start)
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in ("decimal", "dec", "numeric"):
            return self._decimal(word, start)
        if word in ("varchar", "char"):
            self._numbers((0, 0))
            return pa.string()
        if word == "array":
            self.expect("<")
            item = self._type()
            self.expect(">")
            return pa.list_(_field("element", item))
        if word == "map":
            self.expect("<")
            key = self._type()
            if key == _VARIANT or pa.types.is_null(key):
                raise self.error("expected keys of another type than VARIANT and VOID")
            self.expect(",")
            value = self._type()
            self.expect(">")
            return pa.map_(key, _field("value", value))
        if word == "struct":
            self.expect("<")
            fields = [self.field(separator=True)]
            while self.take(","):
                fields.append(self.field(separator=True))
            self.expect(">")
            return pa.struct(fields)
        hint = "Declare the column as STRING." if word == "time" else did_you_mean(word, _NAMES)
        self.add_error(start, word, f'there is no type "{word}"', "unknown-type", hint)
        self._skip_type()
        return _STAND_IN

    def _skip_type(self) -> None:
        """Skips the tokens of an unknown type up to the next column."""
        depth = 0
        while self.tokens and (depth or self.tokens[0] not in (",", ">", ")")):
            depth += nesting(self.tokens[0])
            self.next("a type")

    def _check_digits(self, word: str, start: int) -> None:
        digits = self.next("a number of digits")
        self.expect(")")
        if not digits.isdecimal() or int(digits) > _MAX_DIGITS:
            self.add_error(
                start, word,
                f"the type {word.upper()}({digits}) has nanoseconds, and times have microseconds",
                "unsupported-type", f"Write {word.upper()}, or BIGINT for nanoseconds.",
            )  # fmt: skip

    def _decimal(self, word: str, start: int) -> pa.DataType:
        precision, scale = self._numbers((10, 0))
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            self.add_error(
                start, word,
                f"invalid schema: expected a decimal of 1 to {_MAX_PRECISION} digits with at most "
                f"as many decimal places, found DECIMAL({precision},{scale})",
                "invalid-schema", "Write a smaller type, as in DECIMAL(38,9), or DOUBLE.",
            )  # fmt: skip
            return _STAND_IN
        return pa.decimal128(precision, scale)

    def _numbers(self, default: tuple[int, int]) -> tuple[int, int]:
        if not self.take("("):
            return default
        first = self._number()
        second = self._number() if self.take(",") else 0
        self.expect(")")
        return first, second

    def _number(self) -> int:
        token = self.next("a number")
        if not re.fullmatch(r"[0-9]{1,9}", token):
            raise self.error(f"expected a number, found {token[:20]!r}")
        return int(token)

    def _name(self) -> str:
        start = self.start
        token = self.next("a column name")
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not re.match(r"[A-Za-z_0-9]", token):
            raise self.error(f"unexpected {token!r}", start)
        return token
