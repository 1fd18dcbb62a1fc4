"""Sources of systems that push and forget: what arrives goes into a journal first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import pyarrow as pa
from pydantic import Field

from penstock.core.errors import StateError
from penstock.core.units import ByteSize, Duration
from penstock.journal import RECEIVED, Bounds, Journal, JournalReader
from penstock.sdk.capability import Capability
from penstock.sdk.component import Level
from penstock.sdk.config import Config
from penstock.sdk.record import Read
from penstock.sdk.source import Offset, ReplayableSource

ORIGIN = "journal"


class JournalOptions(Config):
    """The journal that keeps what arrives until it has been written to all sinks."""

    size: ByteSize = Field(default=1 << 30, ge=1 << 20)
    """The most that it takes of the disk; when it is full, senders are made to wait."""
    flush: Literal["group", "each"] | Duration = "group"
    """When messages are safe: `group` waits for the disk together with what arrives meanwhile,
    `each` for every message by itself. With a time nobody waits, and so much is lost when the
    machine loses power."""


class ReceivingConfig(Config):
    journal: JournalOptions = JournalOptions()
    """How what arrives is kept."""
    max_records: int | None = Field(default=None, ge=1)
    """The most messages in a batch."""


R = TypeVar("R", bound=ReceivingConfig)


class ReceivingSource(ReplayableSource[R]):
    """A source whose system pushes and forgets; it declares BYTES.

    `receive` runs in a process of its own on the driver's machine, one for each source whatever
    number of queries read it. The queries read the journal, which has the columns of `metadata`
    beside the payload.
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

    @property
    def guarantee(self) -> Level:
        """From the system into the journal; what is there is read exactly once."""
        return "at most once" if self.acknowledges is None else "at least once"

    @abstractmethod
    async def receive(self, journal: Journal) -> None:
        """Listens until it is cancelled, and lets go of what it holds then.

        Sets `journal.ready` once what is sent is received, and tells a sender that a message is
        safe only after `journal.append`. Raises Transient or Permanent; after a Transient it is
        called again in a new process, as `restart:` says.
        """

    def about(self) -> pa.Schema:
        """What is known of each message beside its payload: the keys of `Message.metadata`."""
        return pa.schema([])

    def metadata(self) -> pa.Schema:
        return pa.schema([*self.about(), RECEIVED])

    def journal(self) -> Journal:
        """The journal, for the one process that receives."""
        bounds = Bounds(
            size=self.config.journal.size,
            segment=max(min(64 << 20, self.config.journal.size // 8), 1),
            flush=self.config.journal.flush,
        )
        columns = pa.schema([pa.field("payload", pa.binary()), *self.metadata()])
        return Journal(self.directory, columns, bounds)

    def lost(self) -> int:
        """How many messages could not be taken since the journal was made."""
        return self._kept.lost()

    def initial(self) -> Offset:
        return {"position": self._kept.begin()}

    def latest(self, start: Offset) -> Offset:
        return {"position": max(start["position"], self._kept.end())}

    def advance(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        return {"position": min(end["position"], start["position"] + self.config.max_records)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        return self._kept.ranges(start["position"], end["position"])

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        for first, batch in self._kept.read(*partition):
            count = batch.num_rows
            columns = [
                batch.column("payload"),
                pa.repeat(ORIGIN, count),
                pa.array(range(first, first + count), pa.int64()),
                *(_column(batch, name, self.metadata()) for name in read.metadata),
            ]
            names = ["payload", "origin", "position", *read.metadata]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    def commit(self, end: Offset) -> None:
        self._kept.forget(end["position"])

    def lag(self, at: Offset, latest: Offset) -> int:
        return max(0, int(latest["position"]) - int(at["position"]))

    @property
    def _kept(self) -> JournalReader:
        return JournalReader(self.directory)

    @property
    def directory(self) -> Path:
        """Where the journal is. Raises StateError where nothing is kept."""
        if self.context.state is None:
            raise StateError(
                f'source "{self.context.node}" receives, and has no directory to keep that in',
                code="no-journal",
            )
        return self.context.state / "journal"


def _column(batch: pa.RecordBatch, name: str, metadata: pa.Schema) -> pa.Array:
    """A metadata column; empty in what was received before the source had it."""
    type_ = metadata.field(name).type
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, type_)
    return batch.column(name).cast(type_)
