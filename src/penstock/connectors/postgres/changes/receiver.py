"""The receiver of changes: from the stream of the slot to the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.connectors.postgres.changes.messages import (
    Begin,
    Change,
    Commit,
    Parsed,
    Table,
    Truncate,
)
from penstock.connectors.postgres.changes.positions import lsn_text
from penstock.connectors.postgres.changes.setup import Replication
from penstock.connectors.postgres.changes.snapshot import mark_position, read_chunk
from penstock.connectors.postgres.changes.stream import ReplicationStream
from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.sdk import Journal
from penstock.sdk.database.changes import (
    ChangesReceiver,
    Chunk,
    Confirmed,
    Key,
    Progress,
    Row,
    SchemaWriter,
    Transaction,
    Unsent,
    Value,
)


class PostgresReceiver(ChangesReceiver):
    """The receiver of the changes of one table."""

    requests_responses = True

    def __init__(
        self, config: PostgresSourceConfig, replication: Replication,
        connection: PostgresConnection, stream: ReplicationStream, journal: Journal,
        progress: Progress, confirmed: Confirmed, schemas: SchemaWriter | None,
    ) -> None:  # fmt: skip
        size = config.journal.max_size
        super().__init__(replication.key, journal, progress, confirmed, size, schemas)
        self._config, self._replication = config, replication
        self._connection, self._stream = connection, stream
        self._tables: dict[int, Table] = {}
        self._lookup: PostgresConnection | None = None
        self._generated: Sequence[str] = ()
        self._table: tuple[str, str] = ("", "")

    async def start(self) -> int:
        connection = self._connection
        self._table = await asyncio.to_thread(self._replication.resolve_table, connection)
        return await asyncio.to_thread(mark_position, connection)

    async def receive(self) -> None:
        for message in await self._stream.messages(self.idle_seconds):
            await self._process(message)
        self.position = self._stream.position

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._connection, self._replication.table, self.key, after)

    def confirm(self, end: int, *, reply: bool = False) -> None:
        super().confirm(end)
        self._stream.confirm(end, reply=reply)

    def is_reply_requested(self) -> bool:
        return self._stream.reply_requested()

    def close(self) -> None:
        if self._lookup is not None:
            self._lookup.close()

    async def _process(self, message: Parsed) -> None:
        if isinstance(message, Begin):
            text = lsn_text(message.lsn)
            self.transaction = Transaction(message.lsn, text, message.transaction, message.time)
            self.number = 0
        elif isinstance(message, Commit):
            self.transaction = None
            self._stream.position = max(self._stream.position, message.end)
        elif isinstance(message, Table):
            self._tables[message.number] = message
            if self._is_own(message.number):
                await asyncio.to_thread(self._describe, message)
        elif isinstance(message, Change):
            await self._change(message)
        elif isinstance(message, Truncate):
            self._truncate(message)

    def _describe(self, table: Table) -> None:
        """Finds the types of columns, and the generated columns, which the server does not send."""
        connection = self._lookup_connection()
        self._generated = self._replication.generated_columns(connection)
        columns = connection.columns(self._replication.table) or pa.schema([])
        sent = [connection.column_of_type(c.name, c.type, c.modifier) for c in table.columns]
        names = [field.name for field in sent]
        others = [f for f in columns if f.name in self._generated and f.name not in names]
        self.described = pa.schema([*sent, *others])

    def _truncate(self, message: Truncate) -> None:
        if self._config.on_truncate == "fail" and any(map(self._is_own, message.tables)):
            self.truncated(str(self._replication.table))

    def _is_own(self, number: int) -> bool:
        table = self._tables[number]
        return (table.schema, table.name) == self._table

    async def _change(self, change: Change) -> None:
        if not self._is_own(change.table):
            return
        names = [column.name for column in self._tables[change.table].columns]
        before = None if change.before is None else dict(zip(names, change.before, strict=True))
        after: Mapping[str, Value] | None = None
        if change.after is not None:
            sent = dict(zip(names, change.after, strict=True))
            after = {**dict.fromkeys(self._generated, Unsent.VALUE), **sent}
        await self.change(change.operation, before, after)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        connection = self._lookup_connection()
        columns = connection.columns(self._replication.table)
        found = [name for name in names if columns is not None and name in columns.names]
        if not found:
            return {}
        dialect = connection.dialect
        items = ", ".join(f"{dialect.quote(name)}::text" for name in found)
        rows = connection.query(
            f"SELECT {items} FROM {dialect.table(self._replication.table)} "
            f"WHERE {dialect.equal(self.key)}",
            key,
        )
        return dict(zip(found, rows[0], strict=True)) if rows else {}

    def _lookup_connection(self) -> PostgresConnection:
        if self._lookup is None:
            self._lookup = PostgresConnection(self._config, autocommit=True)
        return self._lookup
