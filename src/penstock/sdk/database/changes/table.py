"""A table whose changes are received: from the log and the snapshot to the journal."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.journal import Journal, Message
from penstock.journal.reader import split_batch
from penstock.sdk.database.changes.chunks import ChangedKeys, Chunk
from penstock.sdk.database.changes.loss import truncated_table
from penstock.sdk.database.changes.payloads import changes_of_rows
from penstock.sdk.database.changes.progress import DONE, Confirmed, Progress
from penstock.sdk.database.changes.rows import (
    Key,
    Row,
    Transaction,
    Unsent,
    Value,
    change_payload,
    has_unsent,
    key_text,
    with_values_of,
)
from penstock.sdk.database.changes.schemas import SchemaWriter
from penstock.sdk.database.changes.truncations import TRUNCATION, TruncationWriter
from penstock.sdk.operations import Operation

_PART_ROWS, PART_BYTES = 5000, 4 << 20
_OVERHEAD = 100
"""The bytes of a row beside its payload."""
_WAIT_SECONDS = 1.0


class TableReceiver(ABC):
    """The receiver of the changes of one table with a primary key. `progress` is the journal's.

    `schemas` has the columns of the stream. Without it changes of the schema are ignored.
    `truncations` has the option and the positions of truncations, where tables can be truncated. A
    connector defines the reads of a chunk and of a current row, and sets `described`.
    """

    def __init__(
        self, name: str, key: tuple[str, ...], journal: Journal, progress: Progress,
        confirmed: Confirmed, max_journal_size: int, schemas: SchemaWriter | None = None,
        truncations: TruncationWriter | None = None,
    ) -> None:  # fmt: skip
        self.name, self.key, self.journal, self.schemas = name, key, journal, schemas
        self.truncations = truncations
        self.progress, self.confirmed = progress, confirmed
        self.described: pa.Schema | None = None
        """The columns of the rows that follow in the log."""
        self.while_waiting: Callable[[], None] = lambda: None
        """Called every second while the journal is full, or the log waits for a chunk."""
        self._followed: pa.Schema | None = None
        self._first, self._number = confirmed.position, 0
        self.part_bytes = min(PART_BYTES, max_journal_size // 8)
        """The bytes of rows that are appended together."""
        self._parts: list[list[Message] | pa.RecordBatch] = []
        self._count = self._size = 0
        self._is_durable = True
        self._chunk: asyncio.Task[Chunk] | None = None
        self._changed = ChangedKeys()

    @abstractmethod
    def read_chunk(self, after: Key | None) -> Chunk:
        """Reads the rows after a key. Raises Transient or Permanent."""

    @abstractmethod
    def read_current(self, names: Sequence[str], key: Key) -> Row:
        """Returns values of the current row with a key, empty without one.

        `read_chunk` may run at the same time.
        """

    @property
    def is_complete(self) -> bool:
        """Whether the journal has the snapshot."""
        return self.progress.chunk == DONE

    @property
    def is_reading(self) -> bool:
        """Whether a chunk is read, or waits for the log."""
        return self._chunk is not None

    def reads(self, transaction: Transaction | None) -> bool:
        """Returns whether a transaction is not before the position confirmed at the start.

        Earlier ones are in the journal or in the snapshot.
        """
        return transaction is None or transaction.position >= self._first

    def begin(self, transaction: Transaction) -> None:
        """Begins a transaction of the log."""
        self._number = 0

    def payload(self, operation: Operation, row: Mapping[str, Value]) -> bytes:
        """Returns a change as a payload of the journal."""
        return change_payload(operation, row)

    async def change(
        self, transaction: Transaction, operation: Operation, before: Mapping[str, Value] | None,
        after: Mapping[str, Value] | None,
    ) -> None:  # fmt: skip
        """Adds a change of a row. `before` has the key, or the whole row, before it."""
        for part, values in self.operations(operation, before, after):
            self._number += 1
            await self.add_part(transaction, self._number, part, values, before)

    async def add_part(
        self, transaction: Transaction, number: int, operation: Operation,
        values: Mapping[str, Value], before: Mapping[str, Value] | None,
    ) -> None:  # fmt: skip
        """Adds the change `number` of a transaction, unless the journal has it."""
        if not self.reads(transaction):
            return
        if self._chunk is not None:
            await self.mark_changed(self._key(values), transaction)
        if self.has(transaction, number):
            return
        if self.described is not self._followed:
            await self._follow(self.described, transaction.lsn)
        if has_unsent(values):
            values = await self._complete(operation, values, before)
        self.progress = Progress(transaction.position, number, self.progress.chunk)
        self._add(self.payload(operation, values), transaction)
        if self._is_full:
            await self.pass_on()

    async def truncate(self, transaction: Transaction, *, is_part: bool = False) -> None:
        """Adds the removal of all rows, as the option `on_truncate` says. Raises Permanent.

        The removal of a part (`is_part`), whose rows are not known, cannot be applied.
        """
        self._number += 1
        assert self.truncations is not None
        action = self.truncations.action
        if action == "ignore" or not self.reads(transaction):
            return
        if action == "apply" and self._chunk is not None:
            self._changed.truncation = transaction
        if self.has(transaction, self._number):
            return
        if action == "fail" or is_part:
            raise truncated_table(self.name, transaction.lsn, is_part=is_part)
        await self.flush()
        self.truncations.add(self.journal.position)
        self.progress = Progress(transaction.position, self._number, self.progress.chunk)
        self._add(TRUNCATION, transaction)

    def is_new(self, transaction: Transaction, number: int) -> bool:
        """Returns whether the journal lacks the change `number` of a transaction."""
        return self.reads(transaction) and not self.has(transaction, number)

    def has(self, transaction: Transaction, number: int) -> bool:
        """Returns whether the journal has the change `number` of a transaction."""
        return self.progress.includes(transaction.position, number)

    async def add_rows(
        self, transactions: Sequence[Transaction], numbers: Sequence[int],
        operations: pa.StringArray, rows: pa.RecordBatch,
    ) -> None:  # fmt: skip
        """Adds changes of rows whose columns are texts, each with its transaction and number.

        They are in the order of the log, and the server has sent all values.
        """
        if self._chunk is not None:
            await self._mark_rows(transactions, rows)
        places = enumerate(zip(transactions, numbers, strict=True))
        first = next((place for place, change in places if self.is_new(*change)), None)
        if first is None:
            return
        transactions, numbers = transactions[first:], numbers[first:]
        operations, rows = operations.slice(first), rows.slice(first)
        await self._follow(self.described, transactions[0].lsn)
        self.progress = Progress(transactions[-1].position, numbers[-1], self.progress.chunk)
        changes = changes_of_rows(transactions, numbers, operations, rows, self.progress.chunk)
        for part in split_batch(changes, self.part_bytes):
            self._parts.append(part)
            self._count += part.num_rows
            self._size += part.nbytes
            if self._is_full:
                await self.pass_on()

    async def mark_changed(self, key: Key, transaction: Transaction) -> None:
        """Records that a row has changed: it is left out of a chunk that is read."""
        if self._chunk is not None:
            self._changed.add(key, transaction)
            await self._bound_changed(self._chunk)

    async def _mark_rows(self, transactions: Sequence[Transaction], rows: pa.RecordBatch) -> None:
        assert self._chunk is not None
        keys = zip(*(rows.column(name).to_pylist() for name in self.key), strict=True)
        for key, transaction in zip(keys, transactions, strict=True):
            if self.reads(transaction):
                self._changed.add(key, transaction)
        await self._bound_changed(self._chunk)

    async def _bound_changed(self, chunk: asyncio.Task[Chunk]) -> None:
        """Waits for a chunk once many keys have changed: then only its own keys matter."""
        if self._changed.is_full:
            await self._wait_for(chunk)
            self._changed.limit_to(chunk.result(), self.key)

    def begin_chunk(self) -> None:
        """Begins to read the next chunk, if none is read."""
        if self._chunk is None and not self.is_complete:
            self._changed = ChangedKeys()
            read = asyncio.to_thread(self.read_chunk, self.progress.after)
            self._chunk = asyncio.create_task(read)

    async def finish_chunk(self, position: int) -> None:
        """Appends the rows of a chunk when the log has reached its position."""
        if self._chunk is None or not self._chunk.done():
            return
        chunk = self._chunk.result()
        if position < chunk.position:
            return
        self._chunk = None
        await self._follow(chunk.columns, chunk.lsn)
        rows = self._changed.newest(chunk, self.key)
        end = DONE if chunk.is_last else self._row_key(chunk.rows[-1])
        for index, row in enumerate(rows):
            reached = end if index == len(rows) - 1 else self._row_key(row)
            self.progress = self.progress._replace(chunk=reached)
            self._add(self.payload(Operation.INSERT, row), None, chunk.lsn)
            if self._is_full:
                await self.pass_on()
        self.progress = self.progress._replace(chunk=end)
        await self.flush()

    async def pass_on(self) -> None:
        """Passes the rows to the journal, and waits only while it is full."""
        parts, self._parts, self._count, self._size = self._parts, [], 0, 0
        for part in parts:
            self._is_durable = False
            await self._until(self.journal.take(part))

    async def flush(self) -> None:
        """Passes the rows to the journal, and returns when all rows of it are durable."""
        await self.pass_on()
        if not self._is_durable:
            await self._until(self.journal.flush())
            self._is_durable = True

    async def _until(self, call: Coroutine[Any, Any, None]) -> None:
        """Waits for the end of a call, which ends with this one."""
        task = asyncio.ensure_future(call)
        try:
            await self._wait_for(task)
        finally:
            task.cancel()
        await task

    async def _wait_for(self, task: asyncio.Future[Any]) -> None:
        """Waits for the end of a task. The server receives confirmations meanwhile."""
        while not (await asyncio.wait([task], timeout=_WAIT_SECONDS))[0]:
            self.while_waiting()

    def cancel(self) -> None:
        """Cancels the read of a chunk."""
        if self._chunk is not None:
            self._chunk.cancel()

    async def _follow(self, columns: pa.Schema | None, at: str) -> None:
        """Changes the columns of the stream, before a row with other columns is added."""
        if self.schemas is None or columns is None or columns is self._followed:
            return
        changed = self.schemas.changed(columns, at)
        if changed is not None:
            await self.flush()
            self.schemas.add(self.journal.end, changed)
        self._followed = columns

    def operations(
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

    async def _complete(
        self, operation: Operation, row: Mapping[str, Value], before: Mapping[str, Value] | None
    ) -> dict[str, Value]:
        """Returns a row with the values that the server has not sent.

        They are those of the row before, or the current ones: a later change of the same key then
        has its own values. They are unknown if there is no current row. A delete has null.
        """
        if operation is Operation.DELETE:
            return {n: None if isinstance(value, Unsent) else value for n, value in row.items()}
        row = row if before is None else with_values_of(before, row)
        unsent = [name for name, value in row.items() if isinstance(value, Unsent)]
        if not unsent:
            return dict(row)
        return {**row, **(await asyncio.to_thread(self.read_current, unsent, self._key(row)))}

    def _add(self, payload: bytes, transaction: Transaction | None, lsn: str = "") -> None:
        """Adds a change, or with `lsn` a row of the snapshot, to those for the journal."""
        commit, number, chunk = self.progress
        metadata: dict[str, Any] = {
            "lsn": lsn if transaction is None else transaction.lsn,
            "transaction": None if transaction is None else transaction.id,
            "commit_time": None if transaction is None else transaction.time,
            "snapshot": transaction is None,
            "commit": commit,
            "number": number,
            "chunk": chunk,
        }
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].append(Message(payload, metadata))
        self._count += 1
        self._size += len(payload) + _OVERHEAD

    @property
    def _is_full(self) -> bool:
        return self._count >= _PART_ROWS or self._size >= self.part_bytes

    def _row_key(self, row: Row) -> str:
        return key_text(tuple(row[name] for name in self.key))
