"""Connections that insert rows, as Arrow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.clickhouse.config import ConnectionConfig
from penstock.connectors.clickhouse.connection import ClickhouseConnection
from penstock.connectors.clickhouse.literals import literal
from penstock.connectors.clickhouse.tables import Engine
from penstock.connectors.clickhouse.types import ClickhouseDialect
from penstock.connectors.clickhouse.values import invalid_rows
from penstock.core.errors import RecordError
from penstock.sdk.database import TableName

_SETTINGS: Mapping[str, Any] = {
    "async_insert": 0,
    "wait_end_of_query": 1,
    "insert_deduplicate": 1,
    "input_format_null_as_default": 0,
}
"""An insert is complete when the server responds, and no null becomes a default."""
_KEYS_PER_DELETE = 1000
_CLOCK = "SELECT toUnixTimestamp64Micro(now64(6))"


class WritingConnection(ClickhouseConnection):
    """A connection that inserts rows. `begin` sets the batch of the rows that follow."""

    def __init__(self, config: ConnectionConfig, dialect: ClickhouseDialect) -> None:
        super().__init__(config, dialect, read_only=False)
        self._columns: dict[TableName, pa.Schema | None] = {}
        self._engines: dict[TableName, Engine] = {}
        self._batch, self._version, self._has_version = "", 0, False
        self._continued: set[TableName] = set()

    def begin(self, batch: str) -> None:
        """Begins a batch, whose inserts have a token of its text and of their rows.

        The version of its rows is the time of the server's clock. It grows with each batch, also if
        the clock is set back.
        """
        self._columns.clear()
        self._engines.clear()
        self._batch, self._has_version = batch, False

    def columns(self, table: TableName) -> pa.Schema | None:
        """Returns the columns of a table, which are read once for each batch."""
        if table not in self._columns:
            self._columns[table] = super().columns(table)
        return self._columns[table]

    def invalid_rows(self, table: TableName, rows: pa.RecordBatch) -> Mapping[int, RecordError]:
        target = self.columns(table)
        assert target is not None
        return invalid_rows(rows, target)

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        data = _stream(rows, self.config.compression)
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        token = hashlib.blake2b(f"{self._batch}/{digest}".encode(), digest_size=16).hexdigest()
        name, names = self.dialect.table(table), [*map(self.dialect.quote, rows.schema.names)]
        settings = {**_SETTINGS, "insert_deduplication_token": token}
        # A body of bytes is decoded by the client, and sent again after a closed connection.
        self.call(
            lambda: self._client.raw_insert(name, names, data, settings=settings, fmt="ArrowStream")
        )

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        if self.dialect.removes:
            self.insert(table, rows)
        else:
            self._insert_versions(table, rows, is_deleted=False)

    def delete(self, table: TableName, keys: pa.RecordBatch) -> None:
        if not self.dialect.removes:
            self._insert_versions(table, keys, is_deleted=True)
            return
        names = self.dialect.quote_all(keys.schema.names)
        for start in range(0, keys.num_rows, _KEYS_PER_DELETE):
            part = keys.slice(start, _KEYS_PER_DELETE)
            rows = zip(*(column.to_pylist() for column in part.columns), strict=True)
            values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
            self._remove(table, f"({names}) IN ({values})")

    def _remove(self, table: TableName, condition: str) -> None:
        statement = f"ALTER TABLE {self.dialect.table(table)} DELETE WHERE {condition}"
        settings = {"mutations_sync": 1}
        self.call(lambda: self._client.command(statement, settings=settings))

    def _insert_versions(self, table: TableName, rows: pa.RecordBatch, *, is_deleted: bool) -> None:
        if table not in self._engines:
            engine = self.engine(table)
            assert engine is not None
            self._engines[table] = engine
        columns = self._engines[table].replaces_by
        assert columns is not None
        self._set_version(table, columns[0])
        count = rows.num_rows
        values = (pa.scalar(self._version, pa.uint64()), pa.scalar(int(is_deleted), pa.uint8()))
        for name, value in zip(columns, values, strict=True):
            rows = rows.append_column(name, pa.repeat(value, count))
        self.insert(table, rows)

    def _set_version(self, table: TableName, column: str) -> None:
        """Sets the version of a batch. Reads the greatest version of the table once."""
        if not self._has_version:
            ((clock,),) = self.query(_CLOCK)
            self._version, self._has_version = max(self._version + 1, int(clock)), True
        if table not in self._continued:
            name = self.dialect.quote(column)
            ((last,),) = self.query(f"SELECT max({name}) FROM {self.dialect.table(table)}")
            self._version = max(self._version, int(last or 0) + 1)
            self._continued.add(table)


def _stream(rows: pa.RecordBatch, compression: str) -> memoryview:
    """Returns rows as a stream of Arrow, in one batch."""
    options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return memoryview(stream.getvalue())
