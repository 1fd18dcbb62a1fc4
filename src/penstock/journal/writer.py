"""Appending: what arrives while the disk is busy becomes durable together, by the next sync."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, NamedTuple, Self

import pyarrow as pa

from penstock.core.errors import Permanent, StateError
from penstock.journal.lock import locked
from penstock.journal.mark import Mark
from penstock.journal.message import Message, batch_of, size_of
from penstock.journal.segment import Segment, framed, segments

_PAUSE = 0.02
"""Between two looks whether a full journal has room again."""


@dataclass(frozen=True)
class Bounds:
    """How large a journal becomes, in bytes: all of it, a file of it, and what waits in memory.

    `flush` says when an append is done: `group`, after a sync that appends made meanwhile share;
    `each`, after a sync of its own; a number of seconds: at once, with a sync so often, and a
    machine that loses power loses so much.
    """

    size: int = 1 << 30
    segment: int = 64 << 20
    waiting: int = 64 << 20
    flush: Literal["each", "group"] | float = "group"


class _Append(NamedTuple):
    messages: Sequence[Message]
    size: int
    future: asyncio.Future[None] | None


class Journal:
    """The one process that appends to the journal in a directory.

    Records that were being written when the process or the machine stopped are cut off: nobody
    was told that they are safe. `schema` has the column `payload` and those of the metadata.
    Raises StateError while another process appends.
    """

    def __init__(self, directory: Path, schema: pa.Schema, bounds: Bounds = Bounds()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._schema, self._bounds = directory, schema, bounds
        self.ready = threading.Event()
        """Set by `receive` once it is connected: what is sent from then on is received."""
        self._lock = locked(directory)
        self._mark = Mark(directory)
        self._segment, self._file = self._open()
        self._waiting: list[_Append] = []
        self._waiting_size = 0
        self._turn = asyncio.Lock()
        self._changed = threading.Condition()
        self._closed = False
        self._failed: StateError | None = None
        self._disk = self._measured()
        self._synced = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
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
    def full(self) -> bool:
        """Whether an append would wait: a sender that can be told to wait is told so."""
        if self._waiting_size >= self._bounds.waiting:
            return True
        if self._disk + self._waiting_size < self._bounds.size:
            return False
        self._disk = self._measured()
        return self._disk + self._waiting_size >= self._bounds.size

    async def append(self, messages: Sequence[Message]) -> None:
        """Returns when the messages are durable, which is when the sender may be told.

        They are together, and after those of calls that were made before. Waits while the journal
        is full. Raises StateError if they could not be written, Permanent if they are larger than
        the whole journal.
        """
        if messages:
            future = asyncio.get_running_loop().create_future()
            await self._in_turn(messages, future)
            await future

    async def take(self, messages: Sequence[Message]) -> None:
        """Takes messages of a sender that is told nothing: waits only while the journal is full.

        Raises as `append` does.
        """
        if messages:
            await self._in_turn(messages, None)

    def offer(self, messages: Sequence[Message]) -> bool:
        """Takes messages of a sender that does not wait, without waiting.

        False if the journal is full: they are lost, and counted. Raises StateError once something
        could not be written.
        """
        if self._failed is not None:
            raise self._failed
        if self.full:
            self.lose(len(messages))
            return False
        self._put(_Append(messages, size_of(messages), None))
        return True

    def lose(self, count: int) -> None:
        """Counts messages that cannot be taken for another reason."""
        self._mark.lost += count

    def close(self) -> None:
        """Makes what was given durable, and lets go of the files."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._file.close()
        self._mark.close()
        self._lock.close()

    async def _in_turn(
        self, messages: Sequence[Message], future: asyncio.Future[None] | None
    ) -> None:
        size = size_of(messages)
        if size > self._bounds.size:
            raise Permanent(
                f"{size:,} bytes do not fit into a journal of {self._bounds.size:,}",
                code="journal-too-small",
            )
        async with self._turn:
            while self.full:
                await asyncio.sleep(_PAUSE)
            self._put(_Append(messages, size, future))

    def _put(self, append: _Append) -> None:
        with self._changed:
            if self._failed is not None:
                raise self._failed
            if self._closed:
                raise StateError("the journal is closed", code="journal-closed")
            self._waiting.append(append)
            self._waiting_size += append.size
            self._changed.notify()

    # On the journal's own thread

    def _work(self) -> None:
        while (group := self._next()) is not None:
            try:
                for part in self._parts(group):
                    self._write(part)
            except Exception as error:
                self._fail(error)
            with self._changed:
                self._waiting_size -= sum(append.size for append in group)
            _settle(group, self._failed)
        if self._failed is None:
            self._sync()

    def _next(self) -> list[_Append] | None:
        """All that waits, once something does; None after the last."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait(self._due())
                if self._due() == 0.0:
                    self._sync()
            group, self._waiting = self._waiting, []
            return group or None

    def _due(self) -> float | None:
        """The seconds until a sync is due that nobody waits for."""
        if isinstance(self._bounds.flush, str) or self._position == self._mark.end:
            return None
        return max(0.0, self._synced + self._bounds.flush - time.monotonic())

    def _parts(self, group: list[_Append]) -> Iterator[list[_Append]]:
        if self._bounds.flush == "each":
            yield from ([append] for append in group)
        else:
            yield group

    def _write(self, part: list[_Append]) -> None:
        rows = [message for append in part for message in append.messages]
        batch = batch_of(rows, self._schema)
        frame = framed(batch, self._position)
        self._file.write(frame)
        self._disk += len(frame)
        self._position += len(rows)
        self._file.flush()
        if self._due() in (None, 0.0):
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
        """What was not synced may not be there: nothing is taken any more until a new start."""
        reason = (
            error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        )
        with self._changed:
            self._failed = StateError(
                f"cannot write the journal in {self._directory}: {reason}",
                code="journal-not-written",
            )

    def _open(self) -> tuple[Segment, IO[bytes]]:
        """The last segment, cut where its last whole record ends; the position is there."""
        found = segments(self._directory)
        self._position = found[-1].first if found else 0
        whole = found[-1].whole() if found else None
        if whole is None:
            return self._renewed(found[-1] if found else None)
        segment = found[-1]
        self._position, size = whole
        self._mark.end = self._position
        file = segment.path.open("r+b")
        file.truncate(size)
        file.seek(size)
        os.fsync(file.fileno())
        if segment.schema() != self._schema:
            file.close()
            return self._renewed(segment)
        return segment, file

    def _renewed(self, old: Segment | None) -> tuple[Segment, IO[bytes]]:
        """A new segment, in place of an empty one, or after one that has other columns."""
        self._mark.end = self._position
        if old is not None and old.first == self._position:
            old.path.unlink()
        segment = Segment(self._directory, self._position)
        return segment, segment.create(self._schema)

    def _measured(self) -> int:
        return sum(segment.size for segment in segments(self._directory))


def _settle(group: list[_Append], error: StateError | None) -> None:
    """Tells those who wait, each event loop once."""
    waiting = defaultdict(list)
    for append in group:
        if append.future is not None:
            waiting[append.future.get_loop()].append(append.future)
    for loop, futures in waiting.items():
        try:
            loop.call_soon_threadsafe(_done, futures, error)
        except RuntimeError:
            continue


def _done(futures: list[asyncio.Future[None]], error: StateError | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
