"""The page of the column types of databases, from the type maps of their connectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa
from tables import table

from penstock.connectors.clickhouse import types as clickhouse
from penstock.connectors.duckdb import types as duckdb_types
from penstock.connectors.iceberg import types as iceberg
from penstock.connectors.mysql import types as mysql
from penstock.connectors.postgres import types as postgres
from penstock.connectors.sqlite import types as sqlite
from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import column_type, json_field
from penstock.sdk.database import TypeMap

HEAD = """# Types of databases

The types of the columns that sinks create, and the types that sources read.

"""
WRITTEN = """## Columns of new tables

A sink creates these columns. A column of an existing table may have another type if it stores the
same values. `VARIANT` is any JSON value.

"""
READ = """## Columns of sources

Columns without a counterpart are `STRING`, with the text of the system. A value that its column
cannot hold, such as an infinite date in a `DATE`, is a dead letter. Declare a column in `schema` to
read it with another type, as a `STRING` for numbers of more than 38 digits.

"""
UTC = pa.timestamp("us", tz="UTC")
ROWS: Sequence[pa.Field] = [
    *(
        pa.field("c", type_)
        for type_ in (
            pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
            pa.decimal128(18, 4), pa.string(), pa.binary(), pa.date32(), UTC, pa.timestamp("us"),
            pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()),
            pa.struct([("a", pa.int64())]),
        )
    ),
    json_field(pa.field("c", pa.string())),
]  # fmt: skip
MAPS: dict[str, TypeMap] = {
    "postgres": postgres.TYPES, "mysql": mysql.TYPES, "sqlite": sqlite.TYPES,
    "duckdb": duckdb_types.TYPES, "clickhouse": clickhouse.TYPES, "iceberg": iceberg.TYPES,
}  # fmt: skip
DECLARED: dict[str, Sequence[str]] = {
    "postgres": (
        "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric(18,4)",
        "numeric", "numeric(78,0)", "text", "character varying(20)", "uuid", "bytea", "date",
        "time without time zone", "interval", "timestamp with time zone",
        "timestamp without time zone", "json", "jsonb", "integer[]", "inet", "int4range",
        "an enum",
    ),
    "mysql": (
        "tinyint(1)", "tinyint", "smallint", "mediumint", "int", "bigint", "tinyint unsigned",
        "smallint unsigned", "int unsigned", "bigint unsigned", "year", "float", "double",
        "decimal(18,4)", "decimal(65,0)", "varchar(20)", "longtext", "enum('a')", "set('a')",
        "varbinary(20)", "longblob", "bit(8)", "date", "time", "datetime", "timestamp", "json",
        "geometry",
    ),
    "sqlite": (
        "BOOLEAN", "INTEGER", "BIGINT", "REAL", "DOUBLE", "DECIMAL(18, 4)", "NUMERIC", "TEXT",
        "VARCHAR(20)", "BLOB", "DATE", "DATETIME", "TIMESTAMP", "TIMESTAMP_NTZ", "JSON",
    ),
    "duckdb": (
        "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
        "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL(18,4)", "VARCHAR", "UUID",
        "BLOB", "DATE", "TIME", "INTERVAL", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ", "JSON",
        "INTEGER[]", "MAP(VARCHAR, INTEGER)", "STRUCT(a INTEGER)", "ENUM('a')",
    ),
    "clickhouse": (
        "Bool", "Int8", "Int16", "Int32", "Int64", "Int128", "Int256", "UInt8", "UInt16", "UInt32",
        "UInt64", "UInt128", "UInt256", "Float32", "Float64", "BFloat16", "Decimal(18, 4)",
        "Decimal(76, 4)", "String", "LowCardinality(String)", "FixedString(3)", "UUID",
        "Enum8('a' = 1)", "IPv4", "IPv6", "Date", "Date32", "DateTime", "DateTime64(3, 'UTC')",
        "Time", "JSON", "Array(Int64)", "Map(String, Int64)", "Tuple(a Int64)", "Nested(a Int64)",
    ),
    "iceberg": (
        "boolean", "int", "long", "float", "double", "decimal(18, 4)", "string", "uuid",
        "fixed[3]", "binary", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "unknown",
    ),
}  # fmt: skip


def type_maps() -> str:
    """Returns the page."""
    rows = [
        (f"`{column_type(field)}`", *(written(types, field) for types in MAPS.values()))
        for field in ROWS
    ]
    page = HEAD + WRITTEN + table(("Penstock", *(f"`{name}`" for name in MAPS)), rows) + READ
    for name, types in MAPS.items():
        of = read_by_duckdb if name == "duckdb" else reader(types)
        read = [(f"`{declared}`", f"`{of(declared)}`") for declared in DECLARED[name]]
        page += f"### {types.system}\n\n" + table((types.system, "Penstock"), read)
    return page


def written(types: TypeMap, field: pa.Field) -> str:
    """Returns the type of a new column."""
    try:
        return f"`{types.column_type(field)}`"
    except PlanError:
        return ""


def reader(types: TypeMap) -> Callable[[str], str]:
    """Returns the function from a declared type to the type of rows."""

    def read(declared: str) -> str:
        field = types.field("c", declared)
        return "STRING" if field is None else column_type(field)

    return read


def read_by_duckdb(declared: str) -> str:
    """Returns the type of rows for a type of DuckDB."""
    column = duckdb.sql(f"SELECT NULL::{declared} AS c").types[0]
    return column_type(duckdb_types.field_of("c", column, nullable=True))
