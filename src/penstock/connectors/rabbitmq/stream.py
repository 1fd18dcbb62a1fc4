"""RabbitMQ source of streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.rabbitmq.config import RabbitmqStartAt, RabbitmqStreamConfig
from penstock.connectors.rabbitmq.metadata import METADATA, message_metadata
from penstock.connectors.rabbitmq.stream_reader import Delivery, StreamReader, pooled_reader
from penstock.core.errors import DecodeError
from penstock.sdk import Capability, Offset, Permanent, Read, ReplayableSource
from penstock.sdk.messages.size_limit import reject_larger

PARTITION_SIZE = 50_000
"""The largest number of offsets that a task reads."""

Range = tuple[int, int]
"""Offsets of a stream: the first offset, and the offset after the last message."""


class RabbitmqStreamSource(ReplayableSource[RabbitmqStreamConfig]):
    """Reads a stream of a RabbitMQ broker by offsets over AMQP.

    Large batches are read by several tasks. Offsets are stored in the pipeline's state.

    ```yaml
    type: rabbitmq_stream
    url: amqp://localhost
    stream: clicks
    start: {timestamp: 2026-01-31T12:00:00Z}
    metadata: [offset]
    ```
    """

    parallelism = "a range of offsets"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.BYTES,
        }
    )
    extra = "rabbitmq"
    client_modules = ("aio_pika",)
    _client: StreamReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([("offset", pa.int64()), *METADATA])

    def check(self) -> None:
        StreamReader(self.config).close()

    def sample(self, max_records: int) -> pa.BinaryArray:
        first, end = self._reader.bounds("first")
        payloads: list[bytes] = []
        if first is not None:
            end = min(end, first + max_records)
            for deliveries in self._reader.read(first, end, lambda _: None):
                payloads += [message.body for _, message in deliveries]
        return pa.array(payloads, pa.binary())

    def initial_offset(self) -> Offset:
        start = self.config.start
        if start == "latest":
            return {"offset": self._reader.bounds().end}
        if isinstance(start, RabbitmqStartAt) and start.offset is not None:
            return {"offset": start.offset}
        time = start.time if isinstance(start, RabbitmqStartAt) else None
        first, end = self._reader.bounds(time or "first")
        return {"offset": end if first is None else first}

    def latest_offset(self, start: Offset) -> Offset:
        end = self._reader.bounds().end or start["offset"]
        if end < start["offset"]:
            raise Permanent(
                f'cannot read stream "{self.config.stream}" from offset {start["offset"]:,}: '
                f"the stream ends at offset {end:,}",
                code="unknown-offset",
                hint="Run with --fresh to reset the state if the stream was recreated.",
            )
        return {"offset": end}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        return {"offset": min(end["offset"], start["offset"] + self.config.max_records)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        first, last = start["offset"], end["offset"]
        starts = range(first, last, PARTITION_SIZE)
        return [(offset, min(offset + PARTITION_SIZE, last)) for offset in starts]

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        start, end = partition

        def on_gap(first: int) -> None:
            message = f"messages from offset {start:,} to {min(first, end):,} were deleted"
            if self.config.on_data_loss == "fail":
                raise Permanent(
                    f'cannot read stream "{self.config.stream}": {message}',
                    code="data-gone",
                    hint="Increase the retention of the stream (x-max-age, x-max-length-bytes). "
                    "Set on_data_loss: continue to read the remaining messages.",
                )
            read.reject(None, self.config.stream, start, DecodeError(message, code="data-gone"))

        for deliveries in pooled_reader(self.config).read(start, end, on_gap):
            batch = self._batch(deliveries, read.metadata)
            yield reject_larger(batch, self.config.max_message_size, read)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            message = f"messages from offset {position} were deleted"
            raise DecodeError(message, code="data-gone")
        return super().decode(payload, origin, position)

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        return {"offset": position}

    def lag(self, current: Offset, latest: Offset) -> int:
        return max(0, int(latest["offset"]) - int(current["offset"]))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def _reader(self) -> StreamReader:
        if self._client is None or self._client.closed:
            self.close()
            self._client = StreamReader(self.config)
        return self._client

    def _batch(self, deliveries: Sequence[Delivery], metadata: Sequence[str]) -> pa.RecordBatch:
        from aio_pika import IncomingMessage

        values = [
            message_metadata(IncomingMessage(message)) if metadata else {}
            for _, message in deliveries
        ]
        columns = [
            pa.array([message.body for _, message in deliveries], pa.binary()),
            pa.repeat(self.config.stream, len(deliveries)),
            pa.array([offset for offset, _ in deliveries], pa.int64()),
            *(
                pa.array([row[name] for row in values], self.metadata_schema().field(name).type)
                for name in metadata
            ),
        ]
        names = ["payload", "origin", "position", *metadata]
        return pa.RecordBatch.from_arrays(columns, names=names)
