"""A table whose changes are in the stream of a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.changes.messages import Change, Table
from penstock.connectors.postgres.changes.setup import Replication
from penstock.connectors.postgres.changes.snapshot import read_chunk
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.sdk.database.changes import Chunk, Key, Row, TableReceiver, Transaction, Unsent, Value
from penstock.sdk.operations import Operation


class PostgresTable(TableReceiver):
    """The receiver of the changes of a table.

    `snapshots` reads chunks, and `lookup` is the connection for all other queries.
    """

    def __init__(
        self, replication: Replication, place: tuple[str, str], snapshots: PostgresConnection,
        lookup: PostgresConnection, *, ignores_truncate: bool, before_updates: bool, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(str(replication.table), replication.key, **options)
        self._before_updates = before_updates
        self.place, self.ignores_truncate = place, ignores_truncate
        self._replication, self._snapshots, self._lookup = replication, snapshots, lookup
        self._generated: Sequence[str] = ()

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

    def describe(self, table: Table) -> None:
        """Finds the types of columns, and the generated columns, which the server does not send."""
        connection = self._lookup
        self._generated = self._replication.generated_columns(connection)
        columns = connection.columns(self._replication.table) or pa.schema([])
        names = table.column_names
        sent = connection.columns_of_types(names, [(c.type, c.modifier) for c in table.columns])
        others = [f for f in columns if f.name in self._generated and f.name not in names]
        self.described = pa.schema([*sent, *others])

    async def add(self, transaction: Transaction, table: Table, change: Change) -> None:
        """Adds a change, whose rows have the columns of a table."""
        names = table.column_names
        before = None if change.before is None else dict(zip(names, change.before, strict=True))
        after: Mapping[str, Value] | None = None
        if change.after is not None:
            after = dict(zip(names, change.after, strict=True))
            if self._generated:
                after = {**dict.fromkeys(self._generated, Unsent.VALUE), **after}
        await self.change(transaction, change.operation, before, after)

    def operations(
        self, operation: Operation, before: Mapping[str, Value] | None,
        after: Mapping[str, Value] | None,
    ) -> list[tuple[Operation, Mapping[str, Value]]]:  # fmt: skip
        found = super().operations(operation, before, after)
        if self._before_updates and before is not None and found[0][0] == Operation.UPDATE:
            return [(Operation.UPDATE_BEFORE, before), *found]
        return found
