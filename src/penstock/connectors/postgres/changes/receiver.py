"""The receiver of changes: from the stream of a slot to the tables of its publications."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from penstock.connectors.postgres.changes.messages import (
    Begin,
    Change,
    Commit,
    Parsed,
    Table,
    Truncate,
    parse,
    table_of_row,
)
from penstock.connectors.postgres.changes.positions import lsn_text
from penstock.connectors.postgres.changes.snapshot import mark_position
from penstock.connectors.postgres.changes.stream import START, ReplicationStream
from penstock.connectors.postgres.changes.table import PostgresTable
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import Permanent
from penstock.sdk.database.changes import ChangesReceiver, Transaction

CHECK_SECONDS = 10.0
"""The time between two checks: a table that is not in the publication sends nothing."""


class PostgresReceiver(ChangesReceiver):
    """The receiver of the stream of a slot."""

    requests_responses = True

    def __init__(
        self, tables: Sequence[PostgresTable], connection: PostgresConnection,
        stream: ReplicationStream,
    ) -> None:  # fmt: skip
        super().__init__(tables)
        self._connection, self._stream = connection, stream
        self._own_tables = tables
        self._described: dict[int, tuple[Table, Sequence[PostgresTable]]] = {}
        self._checked = time.monotonic()

    async def start(self) -> int:
        return await asyncio.to_thread(mark_position, self._connection)

    async def receive(self) -> None:
        for message in await self._stream.messages(self.idle_seconds):
            number = table_of_row(message, START)
            if number is None:
                await self._process(parse(message, START))
                continue
            assert self.transaction is not None
            for table in self._described[number][1]:
                table.enqueue(self.transaction, message)
        await self._add_queued(only_full=self.transaction is not None)
        self.position = self._stream.position
        if time.monotonic() - self._checked >= CHECK_SECONDS:
            for table in self._own_tables:
                await asyncio.to_thread(table.check)
            self._checked = time.monotonic()

    async def _add_queued(self, *, only_full: bool) -> None:
        """Adds the changes that tables have queued, with `only_full` those that fill a part."""
        for table in self._own_tables:
            await table.add_queued(only_full=only_full)

    def confirm(self, end: int, *, reply: bool = False) -> None:
        super().confirm(end)
        self._stream.confirm(end, reply=reply)

    def is_reply_requested(self) -> bool:
        return self._stream.reply_requested()

    async def _process(self, message: Parsed | None) -> None:
        if isinstance(message, Change):
            assert self.transaction is not None
            for table in self._described[message.table][1]:
                await table.add(self.transaction, message)
        elif isinstance(message, Begin):
            text = lsn_text(message.lsn)
            self.begin(Transaction(message.lsn, text, message.transaction, message.time))
        elif isinstance(message, Commit):
            self.transaction = None
            self._stream.position = max(self._stream.position, message.end)
        elif isinstance(message, Table):
            place = (message.schema, message.name)
            for table in self._own_tables:
                if table.number == message.number and table.place != place:
                    raise _renamed_table(table.place, place)
            tables = [table for table in self._own_tables if table.place == place]
            self._described[message.number] = message, tables
            for table in tables:
                await table.add_queued()
                await asyncio.to_thread(table.describe, message)
        elif isinstance(message, Truncate):
            assert self.transaction is not None
            tables = [t for number in message.tables for t in self._described[number][1]]
            for table in tables:
                await table.truncate(self.transaction)


def _renamed_table(before: tuple[str, str], after: tuple[str, str]) -> Permanent:
    return Permanent(
        f'the table "{".".join(before)}" has changes under the name "{".".join(after)}": it was '
        "renamed",
        code="not-found",
        hint="Remove the state of the pipeline to read the table again from a snapshot.",
    )
