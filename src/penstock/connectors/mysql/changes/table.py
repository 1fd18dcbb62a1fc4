"""A table whose changes are in the binary log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.changes.gtids import Gtids
from penstock.connectors.mysql.changes.received import Received
from penstock.connectors.mysql.changes.snapshot import read_chunk, read_current
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.core.errors import Permanent
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import Chunk, Key, Row, TableReceiver, Transaction


class MysqlTable(TableReceiver):
    """The receiver of the changes of a table.

    `snapshots` reads chunks, and `lookup` is the connection for rows. `shift` is that of the files
    of the log.
    """

    def __init__(
        self, table: TableName, key: tuple[str, ...], place: tuple[str, str],
        snapshots: MysqlConnection, lookup: MysqlConnection, *, shift: int = 0,
        received: Received | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(str(table), key, **options)
        self.place = place
        self._table, self._snapshots, self._lookup = table, snapshots, lookup
        self._shift, self._received, self._skips = shift, received, False
        self._first_confirmed = 0

    def describe(self, columns: pa.Schema) -> None:
        """Sets the columns of the rows that follow. Raises Permanent without the key."""
        missing = [name for name in self.key if name not in columns.names]
        if missing:
            raise Permanent(
                f'the table "{self.name}" has lost the column "{missing[0]}" of its primary key',
                code="incompatible-schema",
                hint="Remove the state of the pipeline to read the table again with another "
                "primary key.",
            )
        self.described = columns

    def begin(self, transaction: Transaction) -> None:
        super().begin(transaction)
        received, id_ = self._received, transaction.id
        self._skips = received is not None and id_ is not None and received.begin(str(id_))

    def reads(self, transaction: Transaction | None) -> bool:
        return super().reads(transaction) and not self._skips

    def has(self, transaction: Transaction, number: int) -> bool:
        received = self._received
        return super().has(transaction, number) or (
            received is not None and received.has(str(transaction.id), number)
        )

    def reach(self, position: int, gtids: Gtids | None) -> None:
        """Ends a transaction at a position, before which are those of `gtids`."""
        self._skips = False
        if self._received is not None and self._received.is_over(gtids):
            self._received, self._first_confirmed = None, position

    def confirms(self, position: int) -> bool:
        """Returns whether a later run may read the log from a position on.

        The transactions of the journal are before it.
        """
        return self._received is None and position >= self._first_confirmed

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._snapshots, self._table, self.key, after, self._shift)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        return read_current(self._lookup, self._table, names, self.key, key)
