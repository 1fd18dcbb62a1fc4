"""Receiving sources: messages that a system pushes are journaled before they are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import pyarrow as pa
from pydantic import Field

from penstock.core.errors import StateError
from penstock.core.files.durable import replace_durably
from penstock.core.units import ByteSize, PositiveDuration
from penstock.journal import RECEIVED, REJECTED_SIZE, Bounds, Journal, JournalReader
from penstock.journal.chunks import ReadChunks
from penstock.journal.reader import read_chunks
from penstock.sdk.capability import Capability
from penstock.sdk.component import Level
from penstock.sdk.config import Config
from penstock.sdk.messages.repeated_keys import metadata_field, unique_keys
from penstock.sdk.messages.size_limit import reject_oversized
from penstock.sdk.record import Read
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.retained_log import RetainedLog
from penstock.sdk.source import Offset

ORIGIN = "journal"
_BEGUN = "begun"


class JournalOptions(Config):
    """The journal, which stores received messages until all sinks have committed them."""

    max_size: ByteSize = Field(default=1 << 30, ge=1 << 20)
    """The maximum size on disk. A full journal applies backpressure to senders."""
    flush: Literal["group", "each"] | PositiveDuration = "group"
    """The flush policy: `group` flushes concurrent messages to disk together, `each` flushes every
    message. With a duration, messages are acknowledged before the flush; a power
    failure loses the messages of that duration."""


class ReceivingConfig(Config):
    journal: JournalOptions = JournalOptions()
    """The journal of received messages."""
    max_records: int | None = Field(default=None, ge=1)
    """The maximum number of messages in a batch."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a message, and never more than half of a journal. A larger message
    becomes a dead letter with the head of its payload."""


R = TypeVar("R", bound=ReceivingConfig)


class ReceivingSource(ReplayableSource[R]):
    """A source of a system that pushes messages and does not retain them. Declares BYTES.

    `receive` runs in a separate process on the driver's machine, one per source for all queries.
    The queries read the journal, which has the columns of `metadata_schema` beside the payload.
    """

    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.BYTES,
        }
    )

    acknowledges: str | None = ""

    catches_up: ClassVar[bool] = False
    """Whether the system has a backlog. A run until all sources have caught up then begins to read
    when `receive` has set `journal.caught_up`."""

    chunks_of: ReadChunks = staticmethod(read_chunks)
    """The function by which `read` reads the journal. The engine sets another one for tasks on
    other machines."""

    @property
    def guarantee(self) -> Level:
        """The guarantee from the system to the journal. The journal is read exactly once."""
        return "at most once" if self.acknowledges is None else "at least once"

    def shared_receiver(self) -> str | None:
        """Returns the name of a connection that sources share; None for a source of its own.

        One process receives for all sources of a pipeline with the same name.
        """
        return None

    async def receive_shared(self, sources: Sequence[tuple[ReceivingSource[Any], Journal]]) -> None:
        """Receives for sources with the same `shared_receiver`, of which this is the first."""
        ((_, journal),) = sources
        await self.receive(journal)

    @abstractmethod
    async def receive(self, journal: Journal) -> None:
        """Receives messages until cancelled, then releases its resources.

        Sets `journal.ready` once messages are received. Acknowledges a message only after
        `journal.append`. Raises Transient or Permanent. After a Transient the runtime calls
        `receive` again in a new process, as configured by `runtime.restart`.
        """

    def message_metadata_schema(self) -> pa.Schema:
        """Returns the metadata columns of a message: the keys of `Message.metadata`.

        Maps of the journal may repeat keys. Read maps have unique keys, as `repeated_keys` says.
        """
        return pa.schema([])

    def metadata_schema(self) -> pa.Schema:
        fields = [metadata_field(field, self.config) for field in self.message_metadata_schema()]
        return pa.schema([*fields, RECEIVED])

    def journal(self) -> Journal:
        """Opens the journal for the receiving process."""
        bounds = Bounds(
            size=self.config.journal.max_size,
            segment=max(min(64 << 20, self.config.journal.max_size // 8), 1),
            flush=self.config.journal.flush,
            message=min(self.config.max_message_size, self.config.journal.max_size // 2),
        )
        payload = pa.field("payload", pa.binary())
        metadata = [*self.message_metadata_schema(), RECEIVED]
        columns = pa.schema([payload, *metadata, REJECTED_SIZE])
        return Journal(self.directory, columns, bounds)

    def record_beginning(self) -> None:
        """Records durably that messages are received. Called when `journal.ready` is set."""
        replace_durably(self.directory / _BEGUN, "")

    def has_begun(self) -> bool:
        """Returns whether messages were received, in an earlier run or since `clear_beginning`."""
        return (self.directory / _BEGUN).exists()

    def clear_beginning(self) -> None:
        """Removes the record that messages were received in an earlier run."""
        (self.directory / _BEGUN).unlink(missing_ok=True)

    def lost(self) -> int:
        """Returns the number of messages lost since the journal was created."""
        return self._reader.lost()

    def retained(self) -> RetainedLog | None:
        """Returns the log that the system retains for the source; None if it is not measured."""
        return None

    def is_half_full(self) -> bool:
        """Returns whether the journal has reached half of its maximum size."""
        return 2 * self._reader.size() >= self.config.journal.max_size

    def initial_offset(self) -> Offset:
        return {"position": self._reader.begin()}

    def latest_offset(self, start: Offset) -> Offset:
        self._reader.check_end(start["position"])
        return self._offset(start, max(start["position"], self._reader.end()))

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        position = min(end["position"], start["position"] + self.config.max_records)
        return self._offset(start, position)

    def _offset(self, start: Offset, position: int) -> Offset:
        """Returns an offset with the ID of the writer of the records before it.

        The ID differs if a restored journal has other records at the same positions.
        """
        if position == start["position"]:
            return dict(start)
        writer = self._reader.writer_of(position)
        known = {} if writer is None else {"writer": writer}
        return {"position": position, **known}

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return min(first, second, key=lambda offset: int(offset["position"]))

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        return self._reader.ranges(start["position"], end["position"])

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        for first, batch in self._reader.read(*partition):
            count = batch.num_rows
            columns = [
                batch.column("payload"),
                pa.repeat(ORIGIN, count),
                pa.array(range(first, first + count), pa.int64()),
                *(_column(batch, name, self.metadata_schema()) for name in read.metadata),
            ]
            names = ["payload", "origin", "position", *read.metadata]
            rows = pa.RecordBatch.from_arrays(columns, names=names)
            sizes = _column(batch, REJECTED_SIZE.name, pa.schema([REJECTED_SIZE]))
            yield reject_oversized(rows, sizes, read)

    def commit(self, end: Offset) -> None:
        self._reader.remove_before(end["position"])

    def lag(self, current: Offset, latest: Offset) -> int:
        return max(0, int(latest["position"]) - int(current["position"]))

    @property
    def _reader(self) -> JournalReader:
        return JournalReader(self.directory, self.chunks_of)

    @property
    def directory(self) -> Path:
        """The directory of the journal. Raises StateError without a state directory."""
        if self.context.state is None:
            raise StateError(
                f'source "{self.context.node}" requires a state directory for its journal',
                code="no-journal",
            )
        return self.context.state / "journal"


def _column(batch: pa.RecordBatch, name: str, metadata: pa.Schema) -> pa.Array:
    """Returns a metadata column; null for messages received before the column existed."""
    type_ = metadata.field(name).type
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, type_)
    column = batch.column(name)
    return unique_keys(column, type_) if pa.types.is_map(type_) else column.cast(type_)
