"""A table whose changes are in the stream of a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.changes.identity import check_logged
from penstock.connectors.postgres.changes.messages import Change, Table, parse
from penstock.connectors.postgres.changes.row_columns import columns_of
from penstock.connectors.postgres.changes.setup import Replication
from penstock.connectors.postgres.changes.snapshot import read_chunk
from penstock.connectors.postgres.changes.stream import START
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.sdk.database.changes import Chunk, Key, Row, TableReceiver, Transaction, Unsent, Value
from penstock.sdk.database.changes.payloads import MANY
from penstock.sdk.operations import Operation

_PART = 2000
"""The changes of a transaction that are converted together."""


@dataclass
class Queue:
    """Changes of one row each, as messages, with their transactions and numbers.

    A list for each of them: `zip(*rows)` takes longer than the conversion of the rows.
    """

    transactions: list[Transaction] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, transaction: Transaction, number: int, message: bytes) -> None:
        """Adds a change."""
        self.transactions.append(transaction)
        self.numbers.append(number)
        self.messages.append(message)
        self.size += len(message)


class PostgresTable(TableReceiver):
    """The receiver of the changes of a table.

    `number` is its OID. `snapshots` reads chunks, and `lookup` is the connection for all other
    queries.
    """

    def __init__(
        self, replication: Replication, place: tuple[str, str], snapshots: PostgresConnection,
        lookup: PostgresConnection, *, number: int, before_updates: bool, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(str(replication.table), replication.key, **options)
        self._before_updates = before_updates
        self.place, self.number = place, number
        self._replication, self._snapshots, self._lookup = replication, snapshots, lookup
        self._generated: Sequence[str] = ()
        self._names: Sequence[str] = ()
        self._queue = Queue()

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._snapshots, self._replication.table, self.key, after)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        connection, table = self._lookup, self._replication.table
        columns = connection.columns(table)
        found = [name for name in names if columns is not None and name in columns.names]
        if not found:
            return {}
        dialect = connection.dialect
        items = dialect.quote_all(found)
        query = f"SELECT {items} FROM {dialect.table(table)} WHERE {dialect.equal(self.key)}"
        rows = [row for part in connection.copy_rows(query, key, found) for row in part.to_pylist()]
        return rows[0] if rows else {}

    def check(self) -> None:
        """Checks that the log has all changes of the table. Raises LostChanges or Permanent.

        Another table, or none, may have its name, and its publication may be another one.
        """
        try:
            self._replication.check_log(self._lookup)
        finally:  # another table may also be the cause of an error
            self._replication.number_of_table(self._lookup, self.number)

    def describe(self, table: Table) -> None:
        """Finds the types of columns, and the generated columns, which the server does not send.

        Raises Permanent if the rows that follow do not have the key before a change.
        """
        connection = self._lookup
        replication = self._replication
        check_logged(
            replication.table, self.key, table.identity, whole_rows=replication.whole_rows,
            has_whole_rows=table.has_whole_rows,
        )  # fmt: skip
        self._generated = self._replication.generated_columns(connection)
        columns = connection.columns(self._replication.table) or pa.schema([])
        names = self._names = table.column_names
        sent = connection.columns_of_types(names, [(c.type, c.modifier) for c in table.columns])
        others = [f for f in columns if f.name in self._generated and f.name not in names]
        self.described = pa.schema([*sent, *others])

    def enqueue(self, transaction: Transaction, message: bytes) -> None:
        """Queues a change of one row."""
        self._number += 1
        self._queue.add(transaction, self._number, message)

    async def add_queued(self, *, only_full: bool = False) -> None:
        """Adds the queued changes, with `only_full` only if they fill a part."""
        queue = self._queue
        if only_full and len(queue.messages) < _PART and queue.size < self.part_bytes:
            return
        self._queue = Queue()
        if await self._add_together(queue):
            return
        changes = zip(queue.transactions, queue.numbers, queue.messages, strict=True)
        for transaction, number, message in changes:
            await self._add_queued_one(transaction, number, message)

    async def _add_together(self, queue: Queue) -> bool:
        """Adds many changes at once. Returns False for those that must be added one by one."""
        if len(queue.messages) < MANY or self._generated:
            return False
        found = columns_of(queue.messages, START, self._names)
        if found is not None:
            await self.add_rows(queue.transactions, queue.numbers, *found)
        return found is not None

    async def _add_queued_one(self, transaction: Transaction, number: int, message: bytes) -> None:
        change = parse(message, START)
        assert isinstance(change, Change)
        before, after = self._rows(change)
        values = before if after is None else after
        assert values is not None
        await self.add_part(transaction, number, change.operation, values, before)

    async def truncate(self, transaction: Transaction, *, is_part: bool = False) -> None:
        await self.add_queued()
        await super().truncate(transaction, is_part=is_part)

    async def add(self, transaction: Transaction, change: Change) -> None:
        """Adds a change, after those that are queued."""
        await self.add_queued()
        await self.change(transaction, change.operation, *self._rows(change))

    def _rows(
        self, change: Change
    ) -> tuple[Mapping[str, Value] | None, Mapping[str, Value] | None]:
        """Returns the rows of a change before and after it."""
        names, before, after = self._names, None, None
        if change.before is not None:
            before = dict(zip(names, change.before, strict=True))
        if change.after is not None:
            after = dict(zip(names, change.after, strict=True))
            if self._generated:
                after = {**dict.fromkeys(self._generated, Unsent.VALUE), **after}
        return before, after

    def operations(
        self, operation: Operation, before: Mapping[str, Value] | None,
        after: Mapping[str, Value] | None,
    ) -> list[tuple[Operation, Mapping[str, Value]]]:  # fmt: skip
        found = super().operations(operation, before, after)
        if self._before_updates and before is not None and found[0][0] == Operation.UPDATE:
            return [(Operation.UPDATE_BEFORE, before), *found]
        return found
