"""A table whose changes are in the binary log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.connectors.mysql.changes.snapshot import read_chunk, read_current
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import Chunk, Key, Row, TableReceiver


class MysqlTable(TableReceiver):
    """The receiver of the changes of a table.

    `snapshots` reads chunks, and `lookup` is the connection for rows.
    """

    def __init__(
        self, table: TableName, key: tuple[str, ...], place: tuple[str, str],
        snapshots: MysqlConnection, lookup: MysqlConnection, *,
        ignores_truncate: bool, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(str(table), key, **options)
        self.place, self.ignores_truncate = place, ignores_truncate
        self._table, self._snapshots, self._lookup = table, snapshots, lookup

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._snapshots, self._table, self.key, after)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        return read_current(self._lookup, self._table, names, self.key, key)
