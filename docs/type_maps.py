"""The page of the column types of databases, from the type maps of their connectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa
from document_types import WRITTEN as FIELD_TYPES
from document_types import read_by_mongodb
from jdbc_types import WRITTEN as WRITTEN_BY_JDBC
from jdbc_types import read_by_jdbc
from tables import table

from penstock.connectors.clickhouse import types as clickhouse
from penstock.connectors.delta import types as delta
from penstock.connectors.duckdb import types as duckdb_types
from penstock.connectors.iceberg import types as iceberg
from penstock.connectors.mysql import types as mysql
from penstock.connectors.postgres import types as postgres
from penstock.connectors.sqlite import types as sqlite
from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import column_type, json_field
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database import TypeMap

HEAD = """# Types of databases

The types of the columns that sinks create, and the types that sources read.

"""
WRITTEN = """## Columns of new tables

A sink creates these columns. A column of an existing table may have another type if it stores the
same values. `VARIANT` is any JSON value.

"""
JDBC = """### By JDBC

The columns that `jdbc` creates, by the name of the system in its URL. PostgreSQL, MySQL and MariaDB
have the types above. `spark` writes the types of Spark's SQL, as its format stores them.

"""
FIELDS = """## Fields of documents and points

The fields that `mongodb`, `opensearch` (also `elasticsearch`) and `influxdb` write. A column
without a type in InfluxDB is an error, unless `fields` sets its type.

"""
READ = """## Columns of sources

Columns without a counterpart are `STRING`, with the text of the system. A value that its column
cannot hold, such as an infinite date in a `DATE`, is a dead letter. Declare a column in `schema` to
read it with another type, as a `STRING` for numbers of more than 38 digits.

"""
SPARK = """### Spark

`spark` reads the types of Spark's SQL. A type that Parquet does not have, such as an interval, is
an error.

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
        "money", "interval[]", "bit varying(3)", "point", "tsvector", "an enum", "an enum[]",
        "a composite type",
    ),
    "mysql": (
        "tinyint(1)", "tinyint", "smallint", "mediumint", "int", "bigint", "tinyint unsigned",
        "smallint unsigned", "int unsigned", "bigint unsigned", "year", "float", "double",
        "decimal(18,4)", "decimal(65,0)", "varchar(20)", "longtext", "enum('a')", "set('a')",
        "varbinary(20)", "longblob", "bit(8)", "date", "time", "datetime", "timestamp", "json",
        "geometry", "uuid", "inet4", "inet6", "vector(3)",
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
    "delta": (
        "boolean", "byte", "short", "integer", "long", "float", "double", "decimal(18,4)", "string",
        "binary", "date", "timestamp", "timestamp_ntz",
    ),
    "iceberg": (
        "boolean", "int", "long", "float", "double", "decimal(18, 4)", "string", "uuid",
        "fixed[3]", "binary", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "unknown",
    ),
}  # fmt: skip


def type_maps() -> str:
    """Returns the page."""
    columns = {name: types.column_type for name, types in MAPS.items()}
    page = HEAD + WRITTEN + _types_of(columns | {"delta": stored_by_delta})
    page += JDBC + _types_of(WRITTEN_BY_JDBC)
    page += FIELDS + _types_of(FIELD_TYPES) + READ
    for name, declared in DECLARED.items():
        system = TITLES.get(name) or MAPS[name].system
        of = READERS.get(name) or reader(MAPS[name])
        read = [(f"`{each}`", f"`{of(each)}`") for each in declared]
        page += f"### {system}\n\n" + table((system, "Penstock"), read)
    page += "### JDBC\n\n" + table(("JDBC", "Penstock"), read_by_jdbc())
    page += SPARK
    return page + "### MongoDB\n\n" + table(("BSON", "Penstock"), read_by_mongodb())


def _types_of(written: Mapping[str, Callable[[pa.Field], str]]) -> str:
    """Returns the table of the types that systems write for types of rows."""
    rows = [
        (f"`{column_type(field)}`", *(_quoted(of, field) for of in written.values()))
        for field in ROWS
    ]
    return table(("Penstock", *(f"`{name}`" for name in written)), rows)


def _quoted(written: Callable[[pa.Field], str], field: pa.Field) -> str:
    try:
        return f"`{found}`" if (found := written(field)) else ""
    except PlanError:
        return ""


def stored_by_delta(field: pa.Field) -> str:
    """Returns the type of a new column of Delta Lake."""
    type_ = field.type
    if is_list(type_):
        return f"array<{stored_by_delta(type_.value_field)}>"
    if pa.types.is_map(type_):
        return f"map<{stored_by_delta(type_.key_field)}, {stored_by_delta(type_.item_field)}>"
    if pa.types.is_struct(type_):
        parts = (f"{part.name}: {stored_by_delta(part)}" for part in type_)
        return f"struct<{', '.join(parts)}>"
    return delta.TYPES.column_type(field)


def read_by_delta(declared: str) -> str:
    """Returns the type of rows for a type of Delta Lake."""
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    schema = Schema([Field("c", PrimitiveType(declared))])
    return column_type(delta.arrow_schema(schema).field(0))


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


TITLES = {"delta": "Delta Lake"}
READERS: Mapping[str, Callable[[str], str]] = {"duckdb": read_by_duckdb, "delta": read_by_delta}
