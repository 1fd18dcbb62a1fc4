"""The type map of SQLite, which stores values of any type in any column.

The affinity of a declared type changes values: a DECIMAL or JSON text that is a number becomes a
float. So these types are declared as types of text. Source:
https://www.sqlite.org/datatype3.html, section 3.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.database import Dialect, TypeMap
from penstock.sdk.database.types import always, decimal_type

TYPES = TypeMap(
    system="SQLite",
    declared={
        "boolean": "BOOLEAN",
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "decimal": "DECIMAL_TEXT({precision},{scale})",
        "string": "TEXT",
        "binary": "BLOB",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        "timestamp_ntz": "TIMESTAMP_NTZ",
        "list": "JSON_TEXT",
        "nested_list": "JSON_TEXT",
        "map": "JSON_TEXT",
        "struct": "JSON_TEXT",
        "json": "JSON_TEXT",
    },
    read=[
        (r"bool(ean)?", always(pa.bool_())),
        (r"(?:decimal|numeric|decimal_text)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", decimal_type),
        (r".*int.*", always(pa.int64())),
        (r".*(char|clob|text).*", always(pa.string())),
        (r".*blob.*", always(pa.binary())),
        (r".*(real|floa|doub).*", always(pa.float64())),
        (r"date", always(pa.date32())),
        (r"timestamp_ntz", always(pa.timestamp("us"))),
        (r"(datetime|timestamp).*", always(pa.timestamp("us", tz="UTC"))),
        (r".+", always(pa.float64())),
    ],
    json=r"json(b|_text)?",
)
DIALECT = Dialect(TYPES, quotation="`")
"""SQLite reads a name in double quotes as a text if there is no column of the name."""


def to_parameters(column: pa.Array, field: pa.Field) -> list[object] | None:
    """Returns values as SQLite stores them without loss, or None if they need no conversion.

    Times are text that SQLite's functions read, in UTC. NaN, which SQLite stores as null, is text.
    """
    type_ = field.type
    if pa.types.is_timestamp(type_):
        return list(pc.strftime(column, "%Y-%m-%d %H:%M:%S").to_pylist())
    if pa.types.is_date(type_):
        return [None if value is None else value.isoformat() for value in column.to_pylist()]
    if pa.types.is_decimal(type_):
        return [None if value is None else f"{value:f}" for value in column.to_pylist()]
    if pa.types.is_floating(type_) and pc.any(pc.is_nan(column)).as_py():
        return ["NaN" if value != value else value for value in column.to_pylist()]
    return None
