"""Chunks of a snapshot, each with the position of the log that it contains.

MariaDB has the position of a consistent snapshot in `binlog_snapshot_file`. MySQL has no such
position: there a chunk is read with shared locks, which wait for transactions that are in the log
and not yet committed. The locks end with the read.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.changes.positions import LogFile
from penstock.connectors.mysql.connection import MysqlConnection, error_number
from penstock.connectors.mysql.texts import exact_item
from penstock.core.errors import Permanent
from penstock.sdk.database import Cursor, TableName
from penstock.sdk.database.changes import Chunk, Key, Row, Transaction, missing_table
from penstock.sdk.database.changes.chunks import CHUNK_ROWS
from penstock.sdk.database.changes.rows import Datum
from penstock.sdk.database.types import declared_type

_CHUNK_BYTES, _MIN_ROWS = 16 << 20, 100
_PARSE_ERROR = 1064
_FIRST_OFFSET = 4
_SIZE = """
SELECT AVG_ROW_LENGTH FROM information_schema.TABLES
WHERE TABLE_SCHEMA = coalesce(\0, DATABASE()) AND TABLE_NAME = \0
"""


@dataclass(frozen=True)
class LogChunk(Chunk):
    """A chunk with all transactions that begin before `end` in the log."""

    end: int

    def contains(self, transaction: Transaction) -> bool:
        return transaction.position < self.end


def log_status(connection: MysqlConnection) -> tuple[Any, ...]:
    """Returns where the log ends, and the databases that it has and leaves out.

    Raises Transient or Permanent.
    """
    try:
        rows = connection.query("SHOW MASTER STATUS")
    except Permanent as error:
        if error_number(error) != _PARSE_ERROR:
            raise
        rows = connection.query("SHOW BINARY LOG STATUS")
    connection.rollback()
    return rows[0]


def log_end(connection: MysqlConnection, shift: int = 0) -> tuple[LogFile, int]:
    """Returns the file, shifted, and the offset where the log ends.

    Raises Transient or Permanent.
    """
    name, offset, *_ = log_status(connection)
    return LogFile(name, shift=shift), int(offset)


def log_start(connection: MysqlConnection) -> tuple[LogFile, int]:
    """Returns the file and the offset where the log starts. Raises Transient or Permanent."""
    return LogFile(next(iter(log_sizes(connection)))), _FIRST_OFFSET


def log_sizes(connection: MysqlConnection) -> dict[str, int]:
    """Returns the size of each file of the log in their order. Raises Transient or Permanent."""
    rows = connection.query("SHOW BINARY LOGS")
    connection.rollback()
    return {name: int(size) for name, size, *_ in rows}


def read_chunk(
    connection: MysqlConnection, table: TableName, key: tuple[str, ...], after: Key | None,
    shift: int = 0,
) -> Chunk:  # fmt: skip
    """Reads the rows after a key. Raises Transient or Permanent.

    `shift` is that of the files of the log. The transaction has used the table before its columns
    are read, so they do not change.
    """
    dialect = connection.dialect
    cursor = Cursor(dialect.table(table), key, dialect)
    count = _rows_of_chunk(connection, table)
    connection.rollback()
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    start = _snapshot_position(connection)
    lock = "" if start is not None else " LOCK IN SHARE MODE"
    if start is None:
        connection.rollback()
        start = log_end(connection)
    connection.query(f"SELECT 1 FROM {dialect.table(table)} LIMIT 0")
    columns = _columns(connection, table)
    values = None if after is None else key_values(columns, key, after)
    query, parameters = cursor.first(items(connection, columns), values, count)
    query = f"{query}{lock}"
    rows: list[Row] = []
    for part in connection.text_rows(query, parameters):
        rows += [dict(zip(columns.names, row, strict=True)) for row in part]
    connection.rollback()
    file, offset = log_end(connection, shift)
    begin_file, begin = start
    is_last = len(rows) < count
    return LogChunk(
        rows, is_last, file.at(offset), file.text(offset), columns,
        begin_file.shifted(shift).at(begin),
    )  # fmt: skip


def read_current(
    connection: MysqlConnection, table: TableName, names: Any, key: tuple[str, ...], values: Key
) -> Row:
    """Returns values of the current row with a key, empty without one."""
    columns = _columns(connection, table)
    found = pa.schema([columns.field(name) for name in names if name in columns.names])
    if not found.names:
        return {}
    dialect = connection.dialect
    query = (
        f"SELECT {items(connection, found)} FROM {dialect.table(table)} WHERE {dialect.equal(key)}"
    )
    parameters = key_values(columns, key, values)
    rows = [row for part in connection.text_rows(query, parameters) for row in part]
    connection.rollback()
    return dict(zip(found.names, rows[0], strict=True)) if rows else {}


def items(connection: MysqlConnection, columns: pa.Schema) -> str:
    """Returns the SELECT list of columns, whose texts are those of the values in the log."""
    quote = connection.dialect.quote
    return ", ".join(exact_item(quote(each.name), declared_type(each)) for each in columns)


def key_values(columns: pa.Schema, names: tuple[str, ...], key: Key) -> tuple[Any, ...]:
    """Returns the values of a key as parameters, which are compared as their columns are."""
    return tuple(
        _key_value(columns.field(name).type, value) for name, value in zip(names, key, strict=True)
    )


def _key_value(type_: pa.DataType, value: Datum) -> Any:
    if isinstance(value, str) and (
        pa.types.is_integer(type_) or pa.types.is_decimal(type_) or pa.types.is_boolean(type_)
    ):
        return Decimal(value)
    return value


def _columns(connection: MysqlConnection, table: TableName) -> pa.Schema:
    columns = connection.columns(table)
    if columns is None:
        raise missing_table(table)
    return columns


def _rows_of_chunk(connection: MysqlConnection, table: TableName) -> int:
    """Returns the number of rows of a chunk, by their average size."""
    *schema, name = table.parts
    rows = connection.query(_SIZE, (schema[-1] if schema else None, name))
    size = int(rows[0][0] or 1) if rows else 1
    return max(_MIN_ROWS, min(CHUNK_ROWS, _CHUNK_BYTES // max(1, size)))


def _snapshot_position(connection: MysqlConnection) -> tuple[LogFile, int] | None:
    """Returns the position of the snapshot of a transaction; None if the server has none."""
    found = dict(connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'"))
    name, offset = (found.get(f"Binlog_snapshot_{part}") for part in ("file", "position"))
    return (LogFile(name), int(offset)) if name and offset else None
