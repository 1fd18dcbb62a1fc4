"""The types of databases behind JDBC, for the page of the column types of databases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from penstock.connectors.jdbc import types
from penstock.connectors.jdbc.dialects import dialect_of
from penstock.connectors.jdbc.types import JdbcColumn
from penstock.sdk.columns.json_mark import column_type

WRITTEN: Mapping[str, Callable[[pa.Field], str]] = {
    system: dialect_of(system).types.column_type
    for system in ("h2", "hsqldb", "derby", "oracle", "sqlserver", "others")
}
_READ: Sequence[tuple[str, JdbcColumn]] = [
    (name, JdbcColumn("c", code, type_name or name, precision, scale, is_signed))
    for name, code, type_name, precision, scale, is_signed in (
        ("BOOLEAN", types.BOOLEAN, "", 1, 0, False),
        ("BIT(1)", types.BIT, "bit", 1, 0, False),
        ("TINYINT", types.TINYINT, "", 3, 0, True),
        ("TINYINT without a sign", types.TINYINT, "", 3, 0, False),
        ("SMALLINT", types.SMALLINT, "", 5, 0, True),
        ("INTEGER", types.INTEGER, "", 10, 0, True),
        ("BIGINT", types.BIGINT, "", 19, 0, True),
        ("BIGINT without a sign", types.BIGINT, "", 20, 0, False),
        ("REAL", types.REAL, "", 7, 0, True),
        ("FLOAT, DOUBLE", types.DOUBLE, "", 15, 0, True),
        ("NUMERIC(18, 4), DECIMAL(18, 4)", types.DECIMAL, "", 18, 4, True),
        ("NUMERIC without a precision", types.NUMERIC, "", 0, 0, True),
        ("NUMERIC(60)", types.NUMERIC, "", 60, 0, True),
        ("CHAR, VARCHAR, CLOB, NCLOB, SQLXML", 12, "", 20, 0, True),
        ("BINARY, VARBINARY, BLOB", -3, "", 20, 0, True),
        ("DATE", types.DATE, "", 10, 0, True),
        ("TIMESTAMP", types.TIMESTAMP, "", 26, 6, True),
        ("TIMESTAMP WITH TIME ZONE, DATETIMEOFFSET", 2014, "", 32, 6, True),
        ("TIME, UUID, INTERVAL", 1111, "uuid", 0, 0, True),
        ("JSON", 1111, "", 0, 0, True),
        ("INTEGER ARRAY", types.ARRAY, "", 0, 0, True),
        ("others", 1111, "", 0, 0, True),
    )
]


def read_by_jdbc() -> list[tuple[str, str]]:
    """Returns the rows of the table of the types that drivers describe."""
    return [(f"`{name}`", f"`{column_type(column.field)}`") for name, column in _READ]
