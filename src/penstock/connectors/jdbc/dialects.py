"""The SQL of the systems that JDBC drivers reach, by the name of the system in the URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from penstock.connectors.jdbc.types import JdbcTypes
from penstock.sdk.database import Dialect, TableName
from penstock.sdk.database.types import kind_of

Upsert = Literal["statement", "update_insert"]

_STANDARD = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE PRECISION",
    "decimal": "DECIMAL({precision},{scale})",
    "string": "CLOB",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
_JSON = ("list", "nested_list", "map", "struct", "json")
"""Kinds that are stored as JSON text."""
_FETCH_FIRST = "FETCH FIRST {count} ROWS ONLY"


def _types(system: str, **declared: str) -> JdbcTypes:
    types = {**_STANDARD, **declared}
    text = types["string"]
    return JdbcTypes(system, {**dict.fromkeys(_JSON, text), **types}, read=())


@dataclass(frozen=True)
class JdbcDialect(Dialect):
    """The SQL of a system, and the habits of its driver."""

    key_types: Mapping[str, str] = field(
        default_factory=lambda: {"string": "VARCHAR(255)", "binary": "VARBINARY(255)"}
    )
    """Types of key columns, of which systems need the length."""
    upserts: Upsert = "update_insert"
    """How a row is inserted or replaced: by a statement, or by UPDATE and INSERT."""
    creates_if_missing: bool = True
    """Whether the system knows CREATE TABLE IF NOT EXISTS."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the driver by default."""
    login_timeout: str | None = None
    """The property with the seconds of a login, of a driver that ignores that of DriverManager."""
    system_properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the JVM for the driver."""
    shutdown: str | None = None
    """A parameter of the URL that closes an embedded database."""
    texts_as_bytes: frozenset[str] = frozenset()
    """Types whose texts the driver expects as bytes."""
    unordered: frozenset[str] = frozenset()
    """Types by which rows are sorted in another order than their values are compared."""
    times_as_texts: bool = False
    """Whether the driver changes days before 1582 unless they are texts."""
    sends_times_as_texts: bool = False
    """Whether the driver sends times without fractions of seconds unless they are texts."""
    spelling: Callable[[TableName], TableName] | None = None
    """Returns the name of a table as the database spells it."""

    def table(self, table: TableName) -> str:
        return super().table(table if self.spelling is None else self.spelling(table))

    def key_column(self, field: pa.Field) -> str:
        kind = kind_of(field)
        if kind is not None and kind in self.key_types:
            return f"{self.quote(field.name)} {self.key_types[kind]} NOT NULL"
        return super().key_column(field)

    def create_table(self, table: TableName, columns: pa.Schema, key: Sequence[str] = ()) -> str:
        statement = super().create_table(table, columns, key)
        return statement if self.creates_if_missing else statement.replace(" IF NOT EXISTS", "", 1)

    def update(self, table: TableName, names: Sequence[str], key: Sequence[str]) -> str:
        """Returns the statement that replaces the row with a key, whose columns come last."""
        values = ", ".join(f"{self.quote(name)} = {self.parameter}" for name in names)
        return f"UPDATE {self.table(table)} SET {values} WHERE {self.equal(key)}"


@dataclass(frozen=True)
class H2Dialect(JdbcDialect):
    """The SQL of H2."""

    def upsert(self, table: TableName, names: Sequence[str], key: Sequence[str]) -> str:
        marks = ", ".join([self.parameter] * len(names))
        into = f"MERGE INTO {self.table(table)} ({self.quote_all(names)})"
        return f"{into} KEY ({self.quote_all(key)}) VALUES ({marks})"


@dataclass(frozen=True)
class TopDialect(JdbcDialect):
    """The SQL of SQL Server, which limits rows at the start of a query."""

    def limited(self, query: str, count: int) -> str:
        return query.replace("SELECT", f"SELECT TOP ({count})", 1)

    def add_column(self, table: TableName, field: pa.Field) -> str:
        return f"ALTER TABLE {self.table(table)} ADD {self.column(field)}"


def standard(system: str, quotation: str) -> JdbcDialect:
    """Returns the SQL of the standard for a system without a dialect of its own."""
    return JdbcDialect(
        _types(system), quotation=quotation, compares_rows=False, limit=_FETCH_FIRST,
        creates_if_missing=False,
    )  # fmt: skip


_H2 = H2Dialect(
    _types("H2", int8="TINYINT", string="CHARACTER VARYING", json="JSON", list="{element} ARRAY"),
    upserts="statement", key_types={}, texts_as_bytes=frozenset({"json"}), max_name=256,
)  # fmt: skip
_HSQLDB = JdbcDialect(
    _types(
        "HSQLDB", int8="TINYINT", float="DOUBLE", double="DOUBLE", string="LONGVARCHAR",
        binary="LONGVARBINARY",
    ),
    compares_rows=False, key_types={}, properties={"shutdown": "true"}, times_as_texts=True,
    max_name=128,
)  # fmt: skip
_DERBY = JdbcDialect(
    replace(_types("Derby", double="DOUBLE", timestamp="TIMESTAMP"), max_digits=31),
    compares_rows=False, limit=_FETCH_FIRST, creates_if_missing=False, shutdown=";shutdown=true",
    system_properties={"derby.stream.error.file": os.devnull},
    key_types={"string": "VARCHAR(255)", "binary": "VARCHAR(255) FOR BIT DATA"}, max_name=128,
)  # fmt: skip
_POSTGRES = JdbcDialect(
    _types(
        "PostgreSQL", decimal="NUMERIC({precision},{scale})", string="TEXT", binary="BYTEA",
        timestamp="TIMESTAMPTZ", list="{element}[]", nested_list="JSONB", map="JSONB",
        struct="JSONB", json="JSONB",
    ),
    upserts="statement", key_types={},
    # Texts are converted to the types of columns, such as uuid and jsonb.
    properties={"stringtype": "unspecified"}, login_timeout="loginTimeout", max_name=63,
    name_unit="bytes",
)  # fmt: skip
_MYSQL = JdbcDialect(
    _types(
        "MySQL", boolean="TINYINT(1)", int8="TINYINT", double="DOUBLE", string="LONGTEXT",
        binary="LONGBLOB", timestamp="DATETIME(6)", timestamp_ntz="DATETIME(6)", json="JSON",
        **dict.fromkeys(("list", "nested_list", "map", "struct"), "JSON"),
    ),
    quotation="`", upsert_clause="on_duplicate_key", upserts="statement", indexes_rows=False,
    properties={"useCursorFetch": "true"}, unordered=frozenset({"ENUM", "SET", "BIT"}),
)  # fmt: skip
_ORACLE = JdbcDialect(
    _types(
        "Oracle", boolean="NUMBER(1)", int8="NUMBER(3)", int16="NUMBER(5)", int32="NUMBER(10)",
        int64="NUMBER(19)", decimal="NUMBER({precision},{scale})", float="BINARY_FLOAT",
        double="BINARY_DOUBLE", date="DATE", timestamp="TIMESTAMP(6) WITH TIME ZONE",
        timestamp_ntz="TIMESTAMP(6)",
    ),
    compares_rows=False, limit=_FETCH_FIRST, creates_if_missing=False,
    key_types={"string": "VARCHAR2(255 CHAR)", "binary": "RAW(255)"},
)  # fmt: skip
_SQL_SERVER = TopDialect(
    _types(
        "SQL Server", boolean="BIT", double="FLOAT(53)", string="NVARCHAR(MAX)",
        binary="VARBINARY(MAX)", timestamp="DATETIMEOFFSET(6)", timestamp_ntz="DATETIME2(6)",
    ),
    compares_rows=False, creates_if_missing=False,
    key_types={"string": "NVARCHAR(255)", "binary": "VARBINARY(255)"},
)  # fmt: skip
_DIALECTS: Mapping[str, JdbcDialect] = {
    "h2": _H2,
    "hsqldb": _HSQLDB,
    "derby": _DERBY,
    "postgresql": _POSTGRES,
    "mysql": _MYSQL,
    "mariadb": replace(_MYSQL, properties={}),
    "oracle": _ORACLE,
    "sqlserver": _SQL_SERVER,
}


def dialect_of(system: str, quotation: str = '"') -> JdbcDialect:
    """Returns the SQL of a system; that of the standard for an unknown one."""
    return _DIALECTS.get(system) or standard(system, quotation)
