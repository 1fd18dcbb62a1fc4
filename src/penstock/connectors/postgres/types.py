"""The type map of PostgreSQL."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database import Dialect, TypeMap
from penstock.sdk.database.types import always, declared_type

_MAX_PRECISION = 38
_DEFAULT_SCALE = 18


def _numeric(match: re.Match[str]) -> pa.DataType:
    """Returns DECIMAL of a precision and a scale, which may be negative; STRING beyond 38."""
    precision, scale = int(match[1]), int(match[2])
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    return pa.decimal128(precision, scale) if precision <= _MAX_PRECISION else pa.string()


def _array(match: re.Match[str]) -> pa.DataType:
    item = TYPES.field("item", match[1])
    return pa.list_(pa.string() if item is None else item.type)


class PostgresTypes(TypeMap):
    """The type map, whose `numeric` without a precision stores each decimal."""

    def accepts(self, written: pa.Field, target: pa.Field) -> bool:
        is_exact = pa.types.is_decimal(written.type) or pa.types.is_integer(written.type)
        if is_exact and declared_type(target) == "numeric":
            return True
        if is_list(target.type) and written.type == target.type:
            return True
        return super().accepts(written, target)


TYPES: TypeMap = PostgresTypes(
    system="PostgreSQL",
    declared={
        "boolean": "BOOLEAN",
        "int8": "SMALLINT",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        "decimal": "NUMERIC({precision},{scale})",
        "string": "TEXT",
        "binary": "BYTEA",
        "date": "DATE",
        "timestamp": "TIMESTAMPTZ",
        "timestamp_ntz": "TIMESTAMP",
        "list": "{element}[]",
        "nested_list": "JSONB",
        "map": "JSONB",
        "struct": "JSONB",
        "json": "JSONB",
    },
    read=[
        (r"(.+)\[\]", _array),
        (r"boolean", always(pa.bool_())),
        (r"smallint", always(pa.int16())),
        (r"integer", always(pa.int32())),
        (r"bigint|oid", always(pa.int64())),
        (r"real", always(pa.float32())),
        (r"double precision", always(pa.float64())),
        (r"numeric\((\d+),\s*(-?\d+)\)", _numeric),
        (r"numeric", always(pa.decimal128(_MAX_PRECISION, _DEFAULT_SCALE))),
        (r"bytea", always(pa.binary())),
        (r"date", always(pa.date32())),
        (r"timestamp(\(\d\))? with time zone", always(pa.timestamp("us", tz="UTC"))),
        (r"timestamp(\(\d\))? without time zone", always(pa.timestamp("us"))),
        (r"timestamptz", always(pa.timestamp("us", tz="UTC"))),
        (r"timestamp", always(pa.timestamp("us"))),
        (r".*", always(pa.string())),
    ],
    json=r"jsonb?",
)
DIALECT = Dialect(TYPES, parameter="\0", max_name=63, name_unit="bytes", folds_names=False)
