"""Column types of JDBC, and the types of rows for them.

Source of the codes: https://docs.oracle.com/en/java/javase/25/docs/api/java.sql/java/sql/Types.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database import TypeMap
from penstock.sdk.database.types import kind_of, with_declared

_MAX_PRECISION = 38
_DEFAULT_SCALE = 18
BIT, BOOLEAN, ARRAY = -7, 16, 2003
TINYINT, SMALLINT, INTEGER, BIGINT = -6, 5, 4, -5
REAL, FLOAT, DOUBLE = 7, 6, 8
NUMERIC, DECIMAL = 2, 3
DATE, TIMESTAMP = 91, 93
TEXTS = frozenset({1, 12, -1, -15, -9, -16, 2005, 2011, 2009})
"""CHAR, VARCHAR, LONGVARCHAR, their national forms, CLOB, NCLOB, SQLXML."""
BINARIES = frozenset({-2, -3, -4, 2004})
"""BINARY, VARBINARY, LONGVARBINARY, BLOB."""
ZONED = frozenset({2014, -155, -101, -102})
"""TIMESTAMP_WITH_TIMEZONE, DATETIMEOFFSET of SQL Server, the two types of Oracle."""
_INTEGERS = {TINYINT: pa.int8(), SMALLINT: pa.int16(), INTEGER: pa.int32(), BIGINT: pa.int64()}
_UNSIGNED = {
    TINYINT: pa.int16(), SMALLINT: pa.int32(), INTEGER: pa.int64(), BIGINT: pa.decimal128(20, 0)
}  # fmt: skip
_TEXT_NAMES = re.compile(
    r"uuid|decfloat|interval.*|time with time zone|timetz|varbit|bit\(.*", re.IGNORECASE
)
_ZONED_NAMES = re.compile(r"timestamptz|timestamp(\(\d\))? with (local )?time zone", re.IGNORECASE)
_JSON_NAMES = re.compile(r"jsonb?", re.IGNORECASE)
_ELEMENTS: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(), "boolean": pa.bool_(), "int2": pa.int16(), "smallint": pa.int16(),
    "int4": pa.int32(), "integer": pa.int32(), "int8": pa.int64(), "bigint": pa.int64(),
    "float4": pa.float32(), "real": pa.float32(), "float8": pa.float64(), "double": pa.float64(),
    "double precision": pa.float64(), "date": pa.date32(), "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"), "bytea": pa.binary(),
    "binary varying": pa.binary(), "binary large object": pa.binary(),
}  # fmt: skip


@dataclass(frozen=True)
class JdbcColumn:
    """A column of a result or a table, as the driver describes it."""

    name: str
    code: int
    type_name: str
    precision: int
    scale: int
    is_signed: bool
    nullable: bool = True

    @property
    def field(self) -> pa.Field:
        """The column of rows, with its declared type."""
        field = pa.field(self.name, self.type, self.nullable)
        return with_declared(json_field(field) if self.is_json else field, self.type_name)

    @property
    def is_json(self) -> bool:
        """Whether the column has JSON."""
        return _JSON_NAMES.fullmatch(self.type_name) is not None

    @property
    def has_json_elements(self) -> bool:
        """Whether the column has arrays of JSON."""
        return _JSON_NAMES.fullmatch(self.element_name) is not None

    @property
    def is_zoned(self) -> bool:
        """Whether the column has points in time."""
        return self.code in ZONED or _ZONED_NAMES.fullmatch(self.type_name) is not None

    @property
    def type(self) -> pa.DataType:
        """The type of rows. Types without a counterpart are text."""
        code = self.code
        if self.is_json or _TEXT_NAMES.fullmatch(self.type_name):
            return pa.string()
        if code == BOOLEAN or (
            code == BIT and self.type_name.lower() in ("bit", "bool", "boolean")
        ):
            return pa.bool_() if self.precision <= 1 else pa.string()
        if code in _INTEGERS:
            return _INTEGERS[code] if self.is_signed else _UNSIGNED[code]
        if code in (NUMERIC, DECIMAL):
            return self._decimal()
        if self.is_zoned:
            return pa.timestamp("us", tz="UTC")
        if code == ARRAY:
            return pa.list_(self._element())
        return _LEAVES.get(code, pa.binary() if code in BINARIES else pa.string())

    @property
    def second_digits(self) -> int:
        """The digits of a fraction of a second that the column stores."""
        return min(self.scale, 6)

    def _decimal(self) -> pa.DataType:
        """Returns DECIMAL; DECIMAL(38, 18) without a precision, STRING beyond 38 digits."""
        precision, scale = self.precision, self.scale
        if precision <= 0 or scale == -127:  # the scale of NUMBER of Oracle
            return pa.decimal128(_MAX_PRECISION, _DEFAULT_SCALE)
        if scale < 0:
            precision, scale = precision - scale, 0
        precision = max(precision, scale)
        return pa.decimal128(precision, scale) if precision <= _MAX_PRECISION else pa.string()

    @property
    def element_name(self) -> str:
        """The type of the elements of an array, by its name in the system."""
        return re.sub(r"^_|\s+array(\[\d+\])?$|\[\]$", "", self.type_name, flags=re.IGNORECASE)

    def _element(self) -> pa.DataType:
        return _ELEMENTS.get(self.element_name.lower(), pa.string())


_LEAVES: Mapping[int, pa.DataType] = {
    REAL: pa.float32(), FLOAT: pa.float64(), DOUBLE: pa.float64(), DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip


@dataclass(frozen=True)
class JdbcTypes(TypeMap):
    """The types of a system, which accepts columns that store each value of the rows.

    `max_digits` is the maximum precision of its decimals.
    """

    max_digits: int = 38

    def column_type(self, field: pa.Field) -> str:
        if pa.types.is_decimal(field.type) and field.type.precision > self.max_digits:
            raise PlanError(
                f'column "{field.name}": {self.system} has no decimals of {field.type.precision} '
                f"digits, only of {self.max_digits}",
                code="unsupported-type",
                hint=f"Convert the column in a transform: CAST({field.name} AS "
                f"DECIMAL({self.max_digits}, 6)), or AS STRING.",
            )
        return super().column_type(field)

    def accepts(self, written: pa.Field, target: pa.Field) -> bool:
        source, stored = written.type, target.type
        if source == stored:
            return True
        if is_list(source) and is_list(stored):
            return bool(source.value_type == stored.value_type)
        if pa.types.is_nested(source):
            return bool(pa.types.is_string(stored))
        if pa.types.is_boolean(source):
            has_boolean = self.declared["boolean"].startswith(("BOOL", "BIT"))
            return not has_boolean and (pa.types.is_integer(stored) or pa.types.is_decimal(stored))
        if pa.types.is_timestamp(source) and pa.types.is_timestamp(stored):
            # A system without points in time stores them in UTC.
            return stored.tz is None and "ZONE" not in self.zoned_type
        return _is_wider(source, stored)

    @property
    def zoned_type(self) -> str:
        """The type of a new column for points in time, with ZONE if it has a time zone."""
        declared = self.declared["timestamp"]
        return "ZONE" if re.search(r"TZ|OFFSET|ZONE", declared) else declared

    def is_known(self, field: pa.Field) -> bool:
        """Returns whether a new column can have the type of a field."""
        return kind_of(field) in self.declared


def _is_wider(source: pa.DataType, stored: pa.DataType) -> bool:
    """Returns whether a type has each number of another type."""
    if pa.types.is_floating(source):
        return bool(pa.types.is_float64(stored))
    if pa.types.is_string(source) or pa.types.is_large_string(source):
        return bool(pa.types.is_string(stored))
    digits, scale = _digits(source)
    if not digits:
        return False
    if pa.types.is_signed_integer(stored):
        return bool(pa.types.is_signed_integer(source) and stored.bit_width >= source.bit_width)
    if pa.types.is_decimal(stored):
        return bool(stored.scale >= scale and stored.precision - stored.scale >= digits - scale)
    return False


def _digits(type_: pa.DataType) -> tuple[int, int]:
    """Returns the digits of a number and those after its point; no digits for other types."""
    if pa.types.is_decimal(type_):
        return type_.precision, type_.scale
    widths = {8: 3, 16: 5, 32: 10, 64: 19}
    return (widths[type_.bit_width], 0) if pa.types.is_signed_integer(type_) else (0, 0)
