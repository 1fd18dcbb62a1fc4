"""The receiver of changes: from the log and the snapshot to the journal."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar

import pyarrow as pa

from penstock.core.errors import Permanent
from penstock.journal import Journal, Message
from penstock.sdk.database.changes.chunks import ChangedKeys, Chunk
from penstock.sdk.database.changes.progress import DONE, Confirmed, Progress
from penstock.sdk.database.changes.rows import (
    Key,
    Row,
    Transaction,
    Unsent,
    Value,
    change_payload,
    key_text,
)
from penstock.sdk.database.changes.schemas import SchemaWriter
from penstock.sdk.operations import Operation

_PART_ROWS, PART_BYTES = 5000, 4 << 20
_OVERHEAD = 100
"""The bytes of a row beside its payload."""
_IDLE_SECONDS, _CHUNK_SECONDS = 0.2, 0.02
_CONFIRM_SECONDS = 1.0
_RESPONSE_SECONDS = 0.05


class ChangesReceiver(ABC):
    """The receiver of the changes of one table with a primary key. `progress` is the journal's.

    `schemas` has the columns of the stream. Without it changes of the schema are ignored.

    A connector defines `start`, which also returns where the log ends, `receive`, and the reads of
    a chunk and of a current row. It sets `transaction` while the log is within a transaction, and
    `position` to the end of the last transaction that was received.
    """

    requests_responses: ClassVar[bool] = False
    """Whether the position of a quiet log comes only in a response to `confirm`."""

    def __init__(
        self, key: tuple[str, ...], journal: Journal, progress: Progress, confirmed: Confirmed,
        max_journal_size: int, schemas: SchemaWriter | None = None,
    ) -> None:  # fmt: skip
        self.key, self.journal, self.schemas = key, journal, schemas
        self.progress, self.confirmed = progress, confirmed
        self.transaction: Transaction | None = None
        self.position = 0
        self.number = 0
        """The number of own changes in the transaction."""
        self.described: pa.Schema | None = None
        """The columns of the rows that follow in the log, set by the connector."""
        self._followed: pa.Schema | None = None
        self._part_bytes = min(PART_BYTES, max_journal_size // 8)
        self._messages: list[Message] = []
        self._size = 0
        self._end = 0
        """The position of the log after the last transaction whose rows are in the journal."""
        self._chunk: asyncio.Task[Chunk] | None = None
        self._changed = ChangedKeys()

    @property
    def idle_seconds(self) -> float:
        """The time for which `receive` waits, shorter while a chunk is read."""
        return _IDLE_SECONDS if self._chunk is None else _CHUNK_SECONDS

    @abstractmethod
    async def start(self) -> int:
        """Prepares to receive. Returns a position of the log after all earlier transactions."""

    @abstractmethod
    async def receive(self) -> None:
        """Receives what has arrived, or waits `idle_seconds`. Calls `change` for each change."""

    @abstractmethod
    def read_chunk(self, after: Key | None) -> Chunk:
        """Reads the rows after a key. Raises Transient or Permanent."""

    @abstractmethod
    def read_current(self, names: Sequence[str], key: Key) -> Row:
        """Returns values of the current row with a key, empty without one.

        `read_chunk` may run at the same time.
        """

    def confirm(self, end: int, *, reply: bool = False) -> None:
        """Stores, and sends to the server, that all changes before a position are durable.

        `reply` requests a response with the position that the log has reached.
        """
        self.confirmed.raise_to(end)

    def is_reply_requested(self) -> bool:
        """Returns whether the server waits for `confirm`."""
        return False

    def close(self) -> None:  # noqa: B027
        """Releases resources."""

    async def run(self) -> None:
        """Receives until cancelled. Raises Transient or Permanent."""
        try:
            await self._run()
        finally:
            if self._chunk is not None:
                self._chunk.cancel()
            self.close()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        confirmed = loop.time()
        backlog = await self.start()
        while True:
            self._begin_chunk()
            await self.receive()
            if self.transaction is None:
                await self._flush()
                await self._finish_chunk()
                self._end = max(self._end, self.position)
                if self.progress.chunk == DONE and self._end >= backlog:
                    self.journal.caught_up.set()
            since = loop.time() - confirmed
            waits = (
                self.requests_responses
                and not self.journal.caught_up.is_set()
                and since >= _RESPONSE_SECONDS
            )
            if waits or self.is_reply_requested() or since >= _CONFIRM_SECONDS:
                self.confirm(self._end, reply=waits)
                confirmed = loop.time()

    async def change(
        self, operation: Operation, before: Mapping[str, Value] | None,
        after: Mapping[str, Value] | None,
    ) -> None:  # fmt: skip
        """Adds a change of a row. `before` has the key, or the whole row, before it."""
        transaction = self.transaction
        assert transaction is not None
        for part, values in self._operations(operation, before, after):
            self.number += 1
            if self._chunk is not None:
                self._changed.add(self._key(values), transaction)
            if not self.progress.includes(transaction.position, self.number):
                await self._follow(self.described, transaction.lsn)
                row = await self._complete(values, before)
                self.progress = replace(
                    self.progress, commit=transaction.position, number=self.number
                )
                self._add(part, row, transaction)
                await self._flush_part()

    async def _follow(self, columns: pa.Schema | None, at: str) -> None:
        """Changes the columns of the stream, before a row with other columns is added."""
        if self.schemas is None or columns is None or columns is self._followed:
            return
        changed = self.schemas.changed(columns, at)
        if changed is not None:
            await self._flush()
            self.schemas.add(self.journal.end, changed)
        self._followed = columns

    def _operations(
        self, operation: Operation, before: Mapping[str, Value] | None,
        after: Mapping[str, Value] | None,
    ) -> list[tuple[Operation, Mapping[str, Value]]]:  # fmt: skip
        """Returns the operations of a change. A change of the key is a delete and an insert."""
        if after is None:
            assert before is not None
            return [(Operation.DELETE, before)]
        if before is None or self._key(before) == self._key(after):
            return [(operation, after)]
        return [(Operation.DELETE, before), (Operation.INSERT, after)]

    def _key(self, row: Mapping[str, Value]) -> Key:
        return tuple(None if isinstance(value := row[name], Unsent) else value for name in self.key)

    async def _complete(self, row: Mapping[str, Value], before: Mapping[str, Value] | None) -> Row:
        """Returns a row with the values that the server has not sent.

        They are those of the row before, or the current ones: a later change of the same key then
        has its own values.
        """
        unsent = [name for name, value in row.items() if isinstance(value, Unsent)]
        if unsent and before is not None:
            row = {**row, **{n: v for n in unsent if (v := before.get(n)) is not None}}
            unsent = [name for name in unsent if isinstance(row[name], Unsent)]
        current: Row = {}
        if unsent:
            current = await asyncio.to_thread(self.read_current, unsent, self._key(row))
        return {
            name: current.get(name) if isinstance(value, Unsent) else value
            for name, value in row.items()
        }

    def truncated(self, table: str) -> None:
        """Raises Permanent for a table whose rows were removed at once."""
        at = self.transaction.lsn if self.transaction is not None else "an unknown position"
        raise Permanent(
            f'the table "{table}" was truncated at {at}; the rows that were removed are not known',
            code="truncated",
            hint="Set on_truncate: ignore to keep these rows in the targets, or remove the state "
            "and the targets to read the table again.",
        )

    def _add(
        self, operation: Operation, row: Row, transaction: Transaction | None, lsn: str = ""
    ) -> None:
        """Adds a change, or with `lsn` a row of the snapshot, to those for the journal."""
        payload = change_payload(operation, row)
        metadata: dict[str, Any] = {
            "lsn": lsn if transaction is None else transaction.lsn,
            "transaction": None if transaction is None else transaction.id,
            "commit_time": None if transaction is None else transaction.time,
            "snapshot": transaction is None,
            **asdict(self.progress),
        }
        self._messages.append(Message(payload, metadata))
        self._size += len(payload) + _OVERHEAD

    async def _flush_part(self) -> None:
        if len(self._messages) >= _PART_ROWS or self._size >= self._part_bytes:
            await self._flush()

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
                self.confirm(self._end)
        finally:
            append.cancel()
        await append

    def _begin_chunk(self) -> None:
        if self._chunk is None and self.progress.chunk != DONE:
            self._changed = ChangedKeys()
            read = asyncio.to_thread(self.read_chunk, self.progress.after)
            self._chunk = asyncio.create_task(read)

    async def _finish_chunk(self) -> None:
        """Appends the rows of a chunk when the log has reached its position."""
        if self._chunk is None or not self._chunk.done():
            return
        chunk = self._chunk.result()
        if self.position < chunk.position:
            return
        self._chunk = None
        await self._follow(chunk.columns, chunk.lsn)
        rows = self._changed.newest(chunk, self.key)
        end = DONE if chunk.is_last else self._row_key(chunk.rows[-1])
        for index, row in enumerate(rows):
            reached = end if index == len(rows) - 1 else self._row_key(row)
            self.progress = replace(self.progress, chunk=reached)
            self._add(Operation.INSERT, row, None, chunk.lsn)
            await self._flush_part()
        self.progress = replace(self.progress, chunk=end)
        await self._flush()

    def _row_key(self, row: Row) -> str:
        return key_text(tuple(row[name] for name in self.key))
