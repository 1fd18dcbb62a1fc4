"""A table whose changes are in the binary log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.mysql.changes.gtids import Gtids
from penstock.connectors.mysql.changes.snapshot import read_chunk, read_current
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import Chunk, Key, Row, TableReceiver, Transaction


@dataclass(frozen=True)
class Received:
    """The transactions that a journal has from other servers.

    Of the transaction `last` it has `count` changes.
    """

    gtids: Gtids
    last: str | None = None
    count: int = 0


class MysqlTable(TableReceiver):
    """The receiver of the changes of a table.

    `snapshots` reads chunks, and `lookup` is the connection for rows. `shift` is that of the files
    of the log.
    """

    def __init__(
        self, table: TableName, key: tuple[str, ...], place: tuple[str, str],
        snapshots: MysqlConnection, lookup: MysqlConnection, *,
        ignores_truncate: bool, shift: int = 0, received: Received | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(str(table), key, **options)
        self.place, self.ignores_truncate = place, ignores_truncate
        self._table, self._snapshots, self._lookup = table, snapshots, lookup
        self._shift, self._received = shift, received

    def reads(self, transaction: Transaction | None) -> bool:
        if not super().reads(transaction):
            return False
        if transaction is None or transaction.id is None or self._received is None:
            return True
        return not self._received.gtids.includes(str(transaction.id))

    def has(self, transaction: Transaction, number: int) -> bool:
        if super().has(transaction, number):
            return True
        received = self._received
        return (
            received is not None
            and (transaction.id is not None and transaction.id == received.last)
            and number <= received.count
        )

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._snapshots, self._table, self.key, after, self._shift)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        return read_current(self._lookup, self._table, names, self.key, key)
