"""Sources of JetStream streams, which are read by sequence number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from penstock.connectors.nats.client import pooled_connection
from penstock.connectors.nats.config import NatsSourceConfig, NatsStartAt
from penstock.connectors.nats.offsets import (
    Extent,
    StreamOffset,
    data_loss_error,
    data_loss_record,
)
from penstock.connectors.nats.reader import (
    ProgressConsumer,
    RangeReader,
    SequenceRange,
    StreamMessage,
    find_sequence,
)
from penstock.core.errors import DecodeError, PenstockError, Permanent
from penstock.sdk import Capability, Offset, Read, ReplayableSource
from penstock.sdk.messages.size_limit import reject_larger

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")
STREAM_METADATA = pa.schema(
    [
        ("subject", pa.string()),
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)


class StreamSource(ReplayableSource[NatsSourceConfig]):
    """Reads a stream, each subject filter as a partition."""

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
    client_modules = ("nats", "nkeys")
    lag_unit = "messages"
    _progress_consumer: ProgressConsumer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_progress_consumer": None}

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.config.stream or ""

    @property
    def filters(self) -> list[str]:
        """The subject filters; empty for all subjects."""
        return self.config.subjects

    def metadata_schema(self) -> pa.Schema:
        return STREAM_METADATA

    def check(self) -> None:
        self._extent()

    def sample(self, max_records: int) -> pa.BinaryArray:
        extent = self._extent()
        payloads = [
            message.data
            for range_ in self._ranges(extent.first, extent.end)
            for messages in self._read_range(range_, max_records)
            for message in messages
        ]
        return pa.array(payloads[:max_records], pa.binary())

    def initial_offset(self) -> Offset:
        extent, start = self._extent(), self.config.start
        sequence = extent.end if start == "latest" else extent.first
        if isinstance(start, NatsStartAt):
            sequence = self._start_sequence(start, extent)
        consumer = self._progress
        if consumer is not None:
            self._run("create the consumer of", lambda client: consumer.create(client, sequence))
        return StreamOffset(sequence, extent.created).to_json()

    def latest_offset(self, start: Offset) -> Offset:
        offset, extent = StreamOffset.parse(start), self._extent()
        self._check_data_loss(offset, extent)
        end = max(extent.end, offset.sequence) if extent.same_stream(offset) else extent.end
        return StreamOffset(end, extent.created).to_json()

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limit, latest = self.config.max_records, StreamOffset.parse(end)
        if limit is None:
            return end
        first = self._extent().first_unread(StreamOffset.parse(start))
        return StreamOffset(min(latest.sequence, first + limit), latest.created).to_json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[SequenceRange]:
        offset, latest = StreamOffset.parse(start), StreamOffset.parse(end)
        extent = self._extent()
        loss = self._check_data_loss(offset, extent)
        first = extent.first_unread(offset) if loss else offset.sequence
        ranges = self._ranges(first, latest.sequence)
        ranges[0] = replace(ranges[0], data_loss=loss)
        return [range_ for range_ in ranges if range_.start < range_.end or range_.data_loss]

    def read(self, partition: SequenceRange, read: Read) -> Iterator[pa.RecordBatch]:
        if partition.data_loss:
            gap = data_loss_record(partition.data_loss)
            read.reject(None, self.stream, partition.start, gap)
        for messages in self._read_range(partition):
            batch = self._batch(messages, read.metadata)
            yield reject_larger(batch, self.config.max_message_size, read)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError(f"messages of {origin} were deleted", code="data-gone")
        return super().decode(payload, origin, position)

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        return {"sequence": position, "revision": position}

    def commit(self, end: Offset) -> None:
        consumer, sequence = self._progress, StreamOffset.parse(end).sequence
        if consumer is not None:
            self._run("acknowledge messages of", lambda client: consumer.commit(client, sequence))

    def lag(self, current: Offset, latest: Offset) -> int:
        offset, end = StreamOffset.parse(current), StreamOffset.parse(latest)
        sequence = offset.sequence if offset.created == end.created else 0
        return max(0, end.sequence - sequence)

    def payload(self, message: StreamMessage) -> bytes | None:
        """Returns the payload for the format."""
        return bytes(message.data)

    def metadata_value(self, message: StreamMessage, name: str) -> Any:
        """Returns the value of a metadata column."""
        return stream_metadata(message, name)

    def _batch(self, messages: Sequence[StreamMessage], metadata: Sequence[str]) -> pa.RecordBatch:
        columns = [
            pa.array([self.payload(message) for message in messages], pa.binary()),
            pa.repeat(self.stream, len(messages)),
            pa.array([message.metadata.sequence.stream for message in messages], pa.int64()),
        ]
        for name in metadata:
            type_ = self.metadata_schema().field(name).type
            values = [self.metadata_value(message, name) for message in messages]
            columns.append(pa.array(values, type_))
        names = ["payload", "origin", "position", *metadata]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _ranges(self, start: int, end: int) -> list[SequenceRange]:
        ranges = [SequenceRange(start, end, subject) for subject in self.filters]
        return ranges or [SequenceRange(start, end)]

    def _read_range(
        self, range_: SequenceRange, limit: int | None = None
    ) -> Iterator[list[StreamMessage]]:
        """Yields the messages of a range, up to the request that reaches `limit`."""
        reader, count = RangeReader(self.stream, range_, self.config.timeout), 0
        self._run("read", reader.open)
        try:
            while limit is None or count < limit:
                messages = self._run("read", reader.fetch)
                if not messages:
                    break
                count += len(messages)
                yield messages
        finally:
            with suppress(PenstockError):
                self._run("read", reader.close)

    def _extent(self) -> Extent:
        async def request(client: Client) -> Extent:
            from nats.js.api import RetentionPolicy

            info = await client.jetstream(timeout=self.config.timeout).stream_info(self.stream)
            if info.config.retention == RetentionPolicy.WORK_QUEUE:
                raise Permanent(
                    f'cannot read stream "{self.stream}" by sequence: it is a work queue',
                    code="work-queue",
                    hint="Set group to consume the messages, which removes them.",
                )
            per_subject = (info.config.max_msgs_per_subject or 0) > 0
            deletion_is_loss = info.config.retention == RetentionPolicy.LIMITS and not per_subject
            created = info.created.isoformat() if info.created else ""
            first, end = max(info.state.first_seq, 1), info.state.last_seq + 1
            return Extent(first, end, created, deletion_is_loss)

        return self._run("find", request)

    def _start_sequence(self, start: NatsStartAt, extent: Extent) -> int:
        if start.offset is not None:
            if start.offset > extent.end:
                raise Permanent(
                    f'cannot start at offset {start.offset:,} of stream "{self.stream}": '
                    f"the next message has the sequence number {extent.end:,}",
                    code="unknown-sequence",
                    hint=f"Set start.offset to at most {extent.end}.",
                )
            return max(start.offset, extent.first)
        time = start.time
        assert time is not None
        return self._run(
            "find the start position in",
            lambda client: find_sequence(
                client, self.stream, time, extent.end, self.config.timeout
            ),
        )

    def _check_data_loss(self, offset: StreamOffset, extent: Extent) -> str | None:
        """Describes data loss. Raises Permanent with `on_data_loss: fail`."""
        loss = extent.data_loss(self.stream, offset)
        if loss and self.config.on_data_loss == "fail":
            raise data_loss_error(loss)
        return loss

    def _run(self, action: str, call: Callable[[Client], Awaitable[T]]) -> T:
        return pooled_connection(self.config).run(f'{action} stream "{self.stream}"', call)

    @property
    def _progress(self) -> ProgressConsumer | None:
        config = self.config
        if self._progress_consumer is None and config.consumer is not None:
            self._progress_consumer = ProgressConsumer(
                self.stream, config.consumer, self.filters, config.timeout,
                config.consumer_settings.non_default(),
            )  # fmt: skip
        return self._progress_consumer


def stream_metadata(message: StreamMessage, name: str) -> Any:
    """Returns the value of a column of `STREAM_METADATA`."""
    if name == "sequence":
        return message.metadata.sequence.stream
    if name == "timestamp":
        return message.metadata.timestamp
    return message.headers if name == "headers" else message.subject
