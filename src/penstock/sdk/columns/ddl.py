"""Spark's DDL for columns, parsed without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError, raise_all
from penstock.core.text import did_you_mean, line_and_column
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
                yield _Reader(f"`{name}` {type_}", errors, key=name).single_field()
            except PlanError as error:
                errors.append(OptionError.inside(name, error))
    else:
        yield from _Reader(columns, errors).fields()


def _field(name: str, type_: pa.DataType, nullable: bool = True) -> pa.Field:
    """Returns a field; of type VARIANT a field of JSON text."""
    field = pa.field(name, type_, nullable)
    return json_field(field) if type_ == _VARIANT else field


class _Reader:
    """A reader of columns. Adds the errors after which reading continues to `errors`.

    With a `key` the text is the name, which is the key in a map, and the type of a single column.
    """

    def __init__(self, text: str, errors: list[PlanError], key: str | None = None) -> None:
        self.text, self.errors, self.key = text, errors, key
        self.tokens: list[str] = []
        self.starts: list[int] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if not match:
                raise self._error(f"unexpected {text[position:].strip()[:20]!r}")
            self.tokens.append(match[1])
            self.starts.append(match.start(1))
            position = match.end()

    def fields(self) -> Iterator[pa.Field]:
        yield self.field()
        while self._take(","):
            yield self.field()
        if self.tokens:
            raise self._error(f"unexpected {self.tokens[0]!r}")

    def single_field(self) -> pa.Field:
        field = self.field()
        if self.tokens:
            raise self._error(f"unexpected {self.tokens[0]!r}")
        return field

    def field(self, separator: bool = False) -> pa.Field:
        start = self.starts[0] if self.starts else 0
        name = self._name()
        if separator:
            self._take(":")
        if not self.tokens or self.tokens[0] in ",)>":
            self._add(
                start, name, f'column "{name}" has no type', "invalid-schema",
                f"Write {name} STRING, or another type.",
            )  # fmt: skip
            return _field(name, _STAND_IN)
        type_ = self._type()
        nullable = True
        if self._take("not"):
            self._expect("null")
            nullable = False
        if self._take("comment"):
            self._next("a comment")
        return _field(name, type_, nullable)

    def _type(self) -> pa.DataType:
        start = self.starts[0] if self.starts else 0
        word = self._next("a type").lower()
        if word == "variant":
            return _VARIANT
        if word.startswith("timestamp") and self._take("("):
            self._check_digits(word, start)
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in ("decimal", "dec", "numeric"):
            return self._decimal(word, start)
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
            if key == _VARIANT or pa.types.is_null(key):
                raise self._error("expected keys of another type than VARIANT and VOID")
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
        self._add(start, word, f'there is no type "{word}"', "unknown-type", hint)
        self._skip_type()
        return _STAND_IN

    def _skip_type(self) -> None:
        """Skips the tokens of an unknown type up to the next column."""
        depth = 0
        while self.tokens and (depth or self.tokens[0] not in (",", ">", ")")):
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(self.tokens[0], 0)
            self._next("a type")

    def _check_digits(self, word: str, start: int) -> None:
        digits = self._next("a number of digits")
        self._expect(")")
        if not digits.isdecimal() or int(digits) > _MAX_DIGITS:
            self._add(
                start, word,
                f"the type {word.upper()}({digits}) has nanoseconds, and times have microseconds",
                "unsupported-type", f"Write {word.upper()}, or BIGINT for nanoseconds.",
            )  # fmt: skip

    def _decimal(self, word: str, start: int) -> pa.DataType:
        precision, scale = self._numbers((10, 0))
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            self._add(
                start, word,
                f"invalid schema: expected a decimal of 1 to {_MAX_PRECISION} digits with at most "
                f"as many decimal places, found DECIMAL({precision},{scale})",
                "invalid-schema", "Write a smaller type, as in DECIMAL(38,9), or DOUBLE.",
            )  # fmt: skip
            return _STAND_IN
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
        self.starts.pop(0)
        return self.tokens.pop(0)

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0].lower() == token:
            self._next(token)
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._error(f'expected "{token}"')

    def _add(self, start: int, marked: str, message: str, code: str, hint: str | None) -> None:
        """Adds an error of a column, at an index of the text."""
        option = () if self.key is None else (self.key,)
        before = "" if self.key is None else f"`{self.key}` "
        place = line_and_column(self.text.removeprefix(before), max(start - len(before), 0))
        error = OptionError.of(
            *option, message=message, code=code, hint=hint, line_and_column=place,
            length=len(marked),
        )  # fmt: skip
        self.errors.append(error)

    def _error(self, problem: str) -> PlanError:
        return PlanError(
            f"invalid schema: {problem}",
            code="invalid-schema",
            hint="Declare the columns, as in id LONG, name STRING, at TIMESTAMP.",
        )
