"""The receiver of changes: from the stream and the snapshot to the journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.connectors.postgres.changes.messages import (
    Begin,
    Change,
    Commit,
    Parsed,
    Table,
    Truncate,
    Unsent,
    Value,
)
from penstock.connectors.postgres.changes.positions import Key, key_text, lsn_text
from penstock.connectors.postgres.changes.progress import DONE, Confirmed, Progress
from penstock.connectors.postgres.changes.setup import Replication
from penstock.connectors.postgres.changes.snapshot import (
    ChangedKeys,
    Chunk,
    Row,
    mark_position,
    read_chunk,
)
from penstock.connectors.postgres.changes.stream import ReplicationStream
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import Permanent
from penstock.sdk import Journal, Message
from penstock.sdk.operations import Operation

_PART_ROWS, PART_BYTES = 5000, 4 << 20
_OVERHEAD = 100
"""The bytes of a row beside its payload."""
_IDLE_SECONDS = 0.2
_CONFIRM_SECONDS = 1.0
_RESPONSE_SECONDS = 0.05


@dataclass
class Receiver:
    """The receiver of the changes of one table. `progress` is that of the journal."""

    replication: Replication
    connection: PostgresConnection
    stream: ReplicationStream
    journal: Journal
    progress: Progress
    confirmed: Confirmed
    ignores_truncate: bool = False
    part_bytes: int = PART_BYTES
    """The bytes of rows that are appended to the journal together."""
    _begin: Begin | None = None
    _number: int = 0
    _tables: dict[int, Table] = field(default_factory=dict)
    _messages: list[Message] = field(default_factory=list)
    _size: int = 0
    _end: int = 0
    """The position of the log after the last transaction whose rows are in the journal."""
    _backlog: int = 0
    """The position of the log at the start."""
    _lookup: PostgresConnection | None = None
    _generated: Sequence[str] = ()
    _table: tuple[str, str] = ("", "")
    _chunk: asyncio.Task[Chunk] | None = None
    _changed: ChangedKeys = field(default_factory=ChangedKeys)

    async def run(self) -> None:
        """Receives until cancelled. Raises Transient or Permanent."""
        try:
            await self._run()
        finally:
            if self._chunk is not None:
                self._chunk.cancel()
            if self._lookup is not None:
                self._lookup.close()

    async def _run(self) -> None:
        self._generated = await asyncio.to_thread(
            self.replication.generated_columns, self.connection
        )
        self._table = await asyncio.to_thread(self.replication.resolve_table, self.connection)
        loop = asyncio.get_running_loop()
        confirmed = loop.time()
        self._backlog = await asyncio.to_thread(mark_position, self.connection)
        while True:
            await self._begin_chunk()
            for message in await self.stream.messages(_IDLE_SECONDS):
                await self._process(message)
            if self._begin is None:
                await self._flush()
                await self._finish_chunk()
                self._end = max(self._end, self.stream.position)
                if self.progress.chunk == DONE and self._end >= self._backlog:
                    self.journal.caught_up.set()
            since = loop.time() - confirmed
            # A response has the position that the stream has reached.
            waits = not self.journal.caught_up.is_set() and since >= _RESPONSE_SECONDS
            if waits or self.stream.reply_requested() or since >= _CONFIRM_SECONDS:
                self._confirm(reply=waits)
                confirmed = loop.time()

    def _confirm(self, *, reply: bool = False) -> None:
        """Lets the slot advance to the end of the rows in the journal."""
        self.confirmed.raise_to(self._end)
        self.stream.confirm(self._end, reply=reply)

    async def _process(self, message: Parsed) -> None:
        if isinstance(message, Begin):
            self._begin, self._number = message, 0
        elif isinstance(message, Commit):
            self._begin = None
            self.stream.position = max(self.stream.position, message.end)
        elif isinstance(message, Table):
            self._tables[message.number] = message
        elif isinstance(message, Change):
            await self._change(message)
        elif isinstance(message, Truncate):
            self._truncate(message)
        if len(self._messages) >= _PART_ROWS or self._size >= self.part_bytes:
            await self._flush()

    def _is_own(self, number: int) -> bool:
        table = self._tables[number]
        return (table.schema, table.name) == self._table

    async def _change(self, change: Change) -> None:
        if not self._is_own(change.table):
            return
        begin = self._begin
        assert begin is not None
        names = self._tables[change.table].columns
        before = None if change.before is None else dict(zip(names, change.before, strict=True))
        after = None if change.after is None else dict(zip(names, change.after, strict=True))
        if after is not None:
            after = {**dict.fromkeys(self._generated, Unsent.VALUE), **after}
        for operation, values in self._operations(change.operation, before, after):
            self._number += 1
            if self._chunk is not None:
                self._changed.add(self._key(values), begin.transaction)
            if not self.progress.includes(begin.lsn, self._number):
                row = await self._complete(values, before)
                self.progress = replace(self.progress, commit=begin.lsn, number=self._number)
                self._add(operation, row, begin)

    def _operations(
        self,
        operation: Operation,
        before: dict[str, Value] | None,
        after: dict[str, Value] | None,
    ) -> list[tuple[Operation, dict[str, Value]]]:
        """Returns the operations of a change. A change of the key is a delete and an insert."""
        if after is None:
            assert before is not None
            return [(Operation.DELETE, before)]
        if before is None or self._key(before) == self._key(after):
            return [(operation, after)]
        return [(Operation.DELETE, before), (Operation.INSERT, after)]

    def _key(self, row: dict[str, Value]) -> Key:
        return tuple(
            None if isinstance(value := row[name], Unsent) else value
            for name in self.replication.key
        )

    async def _complete(self, row: dict[str, Value], before: dict[str, Value] | None) -> Row:
        """Returns a row with the values that the server has not sent (TOAST).

        They are those of the row before, or the current ones: a later change of the same key then
        has its own values.
        """
        unsent = [name for name, value in row.items() if isinstance(value, Unsent)]
        if unsent and before is not None:
            row = {**row, **{n: v for n in unsent if (v := before.get(n)) is not None}}
            unsent = [name for name in unsent if isinstance(row[name], Unsent)]
        current = await asyncio.to_thread(self._current, unsent, self._key(row)) if unsent else {}
        return {
            name: current.get(name) if isinstance(value, Unsent) else value
            for name, value in row.items()
        }

    def _current(self, names: Sequence[str], key: Key) -> Row:
        """Reads values of the current row with a key, while a chunk may use the connection."""
        if self._lookup is None:
            self._lookup = PostgresConnection(self.connection.config, autocommit=True)
        dialect = self.connection.dialect
        items = ", ".join(f"{dialect.quote(name)}::text" for name in names)
        rows = self._lookup.query(
            f"SELECT {items} FROM {dialect.table(self.replication.table)} "
            f"WHERE {dialect.equal(self.replication.key)}",
            key,
        )
        return dict(zip(names, rows[0], strict=True)) if rows else {}

    def _truncate(self, message: Truncate) -> None:
        if self.ignores_truncate or not any(map(self._is_own, message.tables)):
            return
        raise Permanent(
            f'the table "{self.replication.table}" was truncated at '
            f"{lsn_text(self._begin.lsn if self._begin else 0)}; the rows that were removed are "
            "not known",
            code="truncated",
            hint="Set on_truncate: ignore to keep these rows in the targets, or remove the state "
            "and the targets to read the table again.",
        )

    def _add(
        self, operation: Operation, row: Row, begin: Begin | None, position: int | None = None
    ) -> None:
        """Adds a change, or with `position` a row of the snapshot, to those for the journal."""
        payload = json.dumps({"op": operation.value, "row": row}, ensure_ascii=False).encode()
        metadata: dict[str, Any] = {
            "lsn": lsn_text(begin.lsn if begin is not None else position or 0),
            "transaction": None if begin is None else begin.transaction,
            "commit_time": None if begin is None else begin.time,
            "snapshot": begin is None,
            **asdict(self.progress),
        }
        self._messages.append(Message(payload, metadata))
        self._size += len(payload) + _OVERHEAD

    async def _flush(self) -> None:
        """Appends the rows to the journal, and returns when they are durable.

        The server receives confirmations meanwhile: a full journal is no reason to disconnect.
        """
        messages, self._messages, self._size = self._messages, [], 0
        if not messages:
            return
        append = asyncio.ensure_future(self.journal.append(messages))
        try:
            while not (await asyncio.wait([append], timeout=_CONFIRM_SECONDS))[0]:
                self._confirm()
        finally:
            append.cancel()
        await append

    async def _begin_chunk(self) -> None:
        if self._chunk is not None or self.progress.chunk == DONE:
            return
        self._changed = ChangedKeys()
        self._chunk = asyncio.create_task(
            asyncio.to_thread(
                read_chunk, self.connection, self.replication.table, self.replication.key,
                self.progress.after,
            )
        )  # fmt: skip

    async def _finish_chunk(self) -> None:
        """Appends the rows of a chunk when the stream has reached its position."""
        if self._chunk is None or not self._chunk.done():
            return
        chunk = self._chunk.result()
        if self.stream.position < chunk.position:
            return
        self._chunk = None
        for row in self._changed.newest(chunk, self.replication.key):
            key = tuple(row[name] for name in self.replication.key)
            self.progress = replace(self.progress, chunk=key_text(key))
            self._add(Operation.INSERT, row, None, chunk.position)
            if len(self._messages) >= _PART_ROWS or self._size >= self.part_bytes:
                await self._flush()
        last = DONE if chunk.last is None else key_text(chunk.last)
        self.progress = replace(self.progress, chunk=last)
        await self._flush()
