"""The writer of a journal, with group commit: one fsync for all pending appends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from penstock.core.errors import Permanent, StateError
from penstock.core.files.durable import create_directory_durably
from penstock.journal.appends import Append, complete
from penstock.journal.bounds import DEFAULT_BOUNDS, Bounds
from penstock.journal.lock import acquire_lock
from penstock.journal.mark import Mark
from penstock.journal.message import Messages, bound_messages, size_of, to_batch
from penstock.journal.segment import Segment, encode_frame, list_segments
from penstock.journal.starts import add_start

_PAUSE = 0.02
"""The interval at which appends to a full journal check for space, in seconds."""


class Journal:
    """The writer of the journal in a directory.

    Truncates an incomplete last record, which was not acknowledged. If acknowledged records are
    corrupt or missing, new records follow at the positions after them, so that a reader of these
    records fails. `schema` has the column `payload` and the metadata columns. Raises StateError if
    another process is the writer.
    """

    def __init__(self, directory: Path, schema: pa.Schema, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        create_directory_durably(directory)
        self._directory, self._schema, self._bounds = directory, schema, bounds
        self.ready = threading.Event()
        """Set by `receive` when the source is connected and receives messages."""
        self.caught_up = threading.Event()
        """Set by `receive` of a source that has a backlog, when the journal has it (see
        `ReceivingSource.catches_up`)."""
        self._lock = acquire_lock(directory)
        self._mark = Mark(directory)
        self._segment, self._file = self._open()
        self._waiting: list[Append] = []
        self._waiting_size = 0
        self._turn = asyncio.Lock()
        self._changed = threading.Condition()
        self._closed = False
        self._failed: StateError | None = None
        self._disk = self._disk_size()
        self._synced = time.monotonic()
        self._add_start()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def end(self) -> int:
        """The position after the last durable record."""
        return self._mark.end

    @property
    def position(self) -> int:
        """The position of the next record, once the appends before are acknowledged."""
        return self._position

    @property
    def full(self) -> bool:
        """Whether an append would block."""
        if self._waiting_size >= self._bounds.waiting:
            return True
        if self._disk + self._waiting_size < self._bounds.size:
            return False
        self._disk = self._disk_size()
        return self._disk + self._waiting_size >= self._bounds.size

    async def append(self, messages: Messages) -> None:
        """Appends messages and returns when they are durable and may be acknowledged.

        The messages are contiguous, in the order of calls. Waits while the journal is full. Raises
        StateError if the write fails, Permanent if the messages exceed the size of the journal.
        """
        messages = bound_messages(messages, self._bounds.message)
        if messages:
            future = asyncio.get_running_loop().create_future()
            await self._append_in_turn(messages, future)
            await future

    async def take(self, messages: Messages) -> None:
        """Appends messages without acknowledgement; waits only while the journal is full.

        Raises the errors of `append`.
        """
        messages = bound_messages(messages, self._bounds.message)
        if messages:
            await self._append_in_turn(messages, None)

    async def flush(self) -> None:
        """Returns when all earlier appends may be acknowledged. Raises StateError."""
        future = asyncio.get_running_loop().create_future()
        self._enqueue(Append([], 0, future))
        await future

    def offer(self, messages: Messages) -> bool:
        """Appends messages without waiting.

        Returns False and counts the messages as lost if the journal is full. Raises StateError
        after a failed write.
        """
        if self._failed is not None:
            raise self._failed
        if self.full:
            self.lose(len(messages))
            return False
        messages = bound_messages(messages, self._bounds.message)
        self._enqueue(Append(messages, size_of(messages), None))
        return True

    def lose(self, count: int) -> None:
        """Counts messages that were dropped for another reason."""
        self._mark.lost += count

    def close(self) -> None:
        """Makes all appends durable and closes the files."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._file.close()
        self._mark.close()
        self._lock.close()

    async def _append_in_turn(
        self, messages: Messages, future: asyncio.Future[None] | None
    ) -> None:
        size = size_of(messages)
        if size > self._bounds.size:
            raise Permanent(
                f"cannot append {size:,} bytes to a journal of {self._bounds.size:,} bytes",
                code="journal-too-small",
            )
        async with self._turn:
            while self.full:
                await asyncio.sleep(_PAUSE)
            self._enqueue(Append(messages, size, future))

    def _enqueue(self, append: Append) -> None:
        with self._changed:
            if self._failed is not None:
                raise self._failed
            if self._closed:
                raise StateError("the journal is closed", code="journal-closed")
            self._waiting.append(append)
            self._waiting_size += append.size
            self._changed.notify()

    def _add_start(self) -> None:
        begin = list_segments(self._directory)[0].first
        try:
            add_start(self._directory, self._position, begin)
        except OSError as error:
            self._fail(error)
            assert self._failed is not None
            raise self._failed from error

    # Writer thread

    def _run(self) -> None:
        while (group := self._take_group()) is not None:
            self._attempt(self._write_parts, group)
            with self._changed:
                self._waiting_size -= sum(append.size for append in group)
            complete(group, self._failed)
        self._attempt(self._sync)

    def _attempt(self, write: Callable[..., None], *arguments: Any) -> None:
        """Writes, unless a write has failed: the file may end with a part of its records."""
        if self._failed is None:
            try:
                write(*arguments)
            except Exception as error:
                self._fail(error)

    def _take_group(self) -> list[Append] | None:
        """Waits for appends and returns all pending appends; None after the last append."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait(self._time_to_sync())
                if self._time_to_sync() == 0.0:
                    self._attempt(self._sync)
            group, self._waiting = self._waiting, []
            return group or None

    def _time_to_sync(self) -> float | None:
        """Returns the seconds until the next periodic fsync; None without a pending fsync."""
        if self._failed or isinstance(self._bounds.flush, str) or self._position == self._mark.end:
            return None
        return max(0.0, self._synced + self._bounds.flush - time.monotonic())

    def _write_parts(self, group: list[Append]) -> None:
        for part in self._parts(group):
            self._write(part)

    def _parts(self, group: list[Append]) -> Iterator[list[Append]]:
        """Yields the appends of each frame, those with messages."""
        part: list[Append] = []
        size = 0
        for append in group:
            if not append.messages:
                continue
            full = self._bounds.flush == "each" or size + append.size > self._bounds.frame
            if part and full:
                yield part
                part, size = [], 0
            part.append(append)
            size += append.size
        if part:
            yield part

    def _write(self, part: list[Append]) -> None:
        batch = to_batch((append.messages for append in part), self._schema)
        frame = encode_frame(batch, self._position)
        self._file.write(frame)
        self._disk += len(frame)
        self._position += batch.num_rows
        self._file.flush()
        if self._time_to_sync() in (None, 0.0):
            self._sync()
        if self._file.tell() >= self._bounds.segment:
            self._roll()

    def _sync(self) -> None:
        os.fdatasync(self._file.fileno())
        self._synced = time.monotonic()
        self._mark.end = self._position

    def _roll(self) -> None:
        self._sync()
        self._file.close()
        self._segment = Segment(self._directory, self._position)
        self._file = self._segment.create(self._schema)

    def _fail(self, error: Exception) -> None:
        """Rejects all further appends, because data before a failed fsync may be lost."""
        reason = (
            error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        )
        with self._changed:
            self._failed = StateError(
                f"cannot write the journal in {self._directory}: {reason}",
                code="journal-not-written",
            )

    def _open(self) -> tuple[Segment, IO[bytes]]:
        """Opens the last segment and truncates it after its last complete record."""
        segments = list_segments(self._directory)
        segment = segments[-1] if segments else None
        self._position = segment.first if segment else 0
        end = segment.complete_end() if segment else None
        if (end[0] if end else self._position) < self._mark.end:
            self._position = self._mark.end
            return self._new_segment(segment)
        if segment is None or end is None:
            return self._new_segment(segment)
        self._position, size = end
        self._mark.end = self._position
        file = segment.path.open("r+b")
        file.truncate(size)
        file.seek(size)
        os.fsync(file.fileno())
        if segment.schema() != self._schema:
            file.close()
            return self._new_segment(segment)
        return segment, file

    def _new_segment(self, old: Segment | None) -> tuple[Segment, IO[bytes]]:
        """Creates a segment, in place of an empty segment or after a segment with other columns."""
        self._mark.end = self._position
        if old is not None and old.first == self._position:
            old.path.unlink()
        segment = Segment(self._directory, self._position)
        return segment, segment.create(self._schema)

    def _disk_size(self) -> int:
        return sum(segment.size for segment in list_segments(self._directory))
