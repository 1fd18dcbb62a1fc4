"""The source of a JetStream stream, which is read by sequence numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from penstock.connectors.nats.client import kept
from penstock.connectors.nats.config import NatsSourceConfig
from penstock.connectors.nats.position import Extent, Position, gone, lost
from penstock.connectors.nats.progress import Progress
from penstock.connectors.nats.reading import Msg, Pull, Range
from penstock.connectors.nats.start import StartAt, since
from penstock.core.errors import DecodeError, PenstockError, Permanent
from penstock.sdk import Capability, Offset, Read, ReplayableSource

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")
METADATA = pa.schema(
    [
        ("subject", pa.string()),
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)


class StreamSource(ReplayableSource[NatsSourceConfig]):
    """Reads a stream, each of its filter subjects by itself."""

    parallelism = "a subject of `subject`, or the stream"
    acknowledges: str | None = "with `consumer`, once the batch is in all sinks"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.BYTES,
        }
    )
    extra = "nats"
    clients = ("nats", "nkeys")
    unit = "messages"
    _progress: Progress | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_progress": None}

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.config.stream or ""

    @property
    def filters(self) -> list[str]:
        """The subjects that are read; all, if there are none."""
        return self.config.subjects

    def metadata(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        self._extent()

    def sample(self, most: int) -> pa.BinaryArray:
        extent = self._extent()
        ranges = self._ranges(extent.first, extent.end)
        found = [m.data for range_ in ranges for some in self._pulled(range_, most) for m in some]
        return pa.array(found[:most], pa.binary())

    def initial(self) -> Offset:
        extent, start = self._extent(), self.config.start
        begin = extent.end if start == "latest" else extent.first
        if isinstance(start, StartAt):
            begin = self._given(start, extent)
        position = Position(begin, extent.created)
        progress = self._reported
        if progress is not None:
            self._run("make the consumer", lambda nats: progress.begin(nats, begin))
        return position.json()

    def latest(self, start: Offset) -> Offset:
        begun, extent = Position.of(start), self._extent()
        self._judge(begun, extent)
        end = max(extent.end, begun.sequence) if extent.same(begun) else extent.end
        return Position(end, extent.created).json()

    def advance(self, start: Offset, end: Offset) -> Offset:
        most, whole = self.config.max_records, Position.of(end)
        if most is None:
            return end
        first = self._extent().start(Position.of(start))
        return Position(min(whole.sequence, first + most), whole.created).json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        begun, whole, extent = Position.of(start), Position.of(end), self._extent()
        missing = self._judge(begun, extent)
        first = max(begun.sequence, extent.first) if extent.same(begun) else extent.first
        if not missing:
            first = begun.sequence
        ranges = self._ranges(first, whole.sequence)
        ranges[0] = replace(ranges[0], lost=missing)
        return [each for each in ranges if each.start < each.end or each.lost]

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        if partition.lost:
            read.reject(None, self.stream, partition.start, gone(partition.lost))
        for messages in self._pulled(partition):
            yield self._batch(messages, read.metadata)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError(f"messages of {origin} are gone", code="data-gone")
        return super().decode(payload, origin, position)

    def commit(self, end: Offset) -> None:
        progress, to = self._reported, Position.of(end).sequence
        if progress is not None:
            self._run("acknowledge", lambda nats: progress.commit(nats, to))

    def lag(self, at: Offset, latest: Offset) -> int:
        begun, whole = Position.of(at), Position.of(latest)
        known = begun.sequence if begun.created == whole.created else 0
        return max(0, whole.sequence - known)

    def payload(self, message: Msg) -> bytes | None:
        """What the format decodes."""
        return bytes(message.data)

    def about(self, message: Msg, name: str) -> Any:
        """A metadata column of one message."""
        return about(message, name)

    def _batch(self, messages: Sequence[Msg], metadata: Sequence[str]) -> pa.RecordBatch:
        columns = [
            pa.array([self.payload(m) for m in messages], pa.binary()),
            pa.repeat(self.stream, len(messages)),
            pa.array([m.metadata.sequence.stream for m in messages], pa.int64()),
        ]
        for name in metadata:
            type_ = self.metadata().field(name).type
            columns.append(pa.array([self.about(m, name) for m in messages], type_))
        names = ["payload", "origin", "position", *metadata]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _ranges(self, start: int, end: int) -> list[Range]:
        return [Range(start, end, each) for each in self.filters] or [Range(start, end)]

    def _pulled(self, range_: Range, most: int | None = None) -> Iterator[list[Msg]]:
        """The messages of a range as they come; about `most`."""
        pull, count = Pull(self.stream, range_, self.config.timeout), 0
        self._run("read", pull.begin)
        try:
            while (found := self._run("read", pull.next)) and (most is None or count < most):
                count += len(found)
                yield found
        finally:
            with suppress(PenstockError):
                self._run("read", pull.end)

    def _extent(self) -> Extent:
        async def ask(nats: Client) -> Extent:
            from nats.js.api import RetentionPolicy

            info = await nats.jetstream(timeout=self.config.timeout).stream_info(self.stream)
            if info.config.retention == RetentionPolicy.WORK_QUEUE:
                raise Permanent(
                    f'cannot read stream "{self.stream}" by sequence: it is a work queue',
                    code="work-queue",
                    hint="queue_group: NAME takes its messages, which are gone then",
                )
            single = (info.config.max_msgs_per_subject or 0) > 0
            forgets = info.config.retention == RetentionPolicy.LIMITS and not single
            created = info.created.isoformat() if info.created else ""
            first, end = max(info.state.first_seq, 1), info.state.last_seq + 1
            return Extent(first, end, created, forgets)

        return self._run("find it", ask)

    def _given(self, start: StartAt, extent: Extent) -> int:
        if start.sequence is not None:
            if start.sequence > extent.end:
                raise Permanent(
                    f'cannot start at message {start.sequence:,} of stream "{self.stream}": '
                    "there is no such message",
                    code="unknown-sequence",
                    hint=f"its next message will have the number {extent.end:,}",
                )
            return max(start.sequence, extent.first)
        at = start.timestamp
        assert at is not None
        limit = self.config.timeout
        return self._run(
            "find where to start", lambda nats: since(nats, self.stream, at, extent.end, limit)
        )

    def _judge(self, begun: Position, extent: Extent) -> str | None:
        """What is lost, where the options allow that. Raises Permanent where they do not."""
        missing = extent.loss(self.stream, begun)
        if missing and self.config.on_data_loss == "fail":
            raise lost(missing)
        return missing

    def _run(self, doing: str, call: Callable[[Client], Awaitable[T]]) -> T:
        return kept(self.config).run(f'{doing}: stream "{self.stream}"', call)

    @property
    def _reported(self) -> Progress | None:
        config = self.config
        if self._progress is None and config.consumer is not None:
            self._progress = Progress(
                self.stream, config.consumer, self.filters, config.timeout,
                config.consumer_settings.given(),
            )  # fmt: skip
        return self._progress


def about(message: Msg, name: str) -> Any:
    """What is known of a message of a stream, by the names of `METADATA`."""
    if name == "sequence":
        return message.metadata.sequence.stream
    if name == "timestamp":
        return message.metadata.timestamp
    return message.headers if name == "headers" else message.subject
