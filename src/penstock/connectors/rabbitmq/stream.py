"""The source of streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.rabbitmq.about import ABOUT, about
from penstock.connectors.rabbitmq.connection import ConnectionConfig
from penstock.connectors.rabbitmq.cursor import Cursor, kept
from penstock.connectors.rabbitmq.deliveries import Received
from penstock.core.errors import DecodeError
from penstock.sdk import (
    Capability,
    Config,
    Offset,
    Permanent,
    Read,
    ReplayableSource,
)

SHARE = 50_000
"""The most offsets that one task reads."""


class StartAt(Config):
    """A place to start from: an offset, or a time."""

    offset: int | None = Field(default=None, ge=0)
    """At the message with this offset."""
    timestamp: datetime | None = None
    """At the chunk of messages in which this time is, or the next one. Without a zone it is UTC."""

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.offset is None) == (self.timestamp is None):
            raise ValueError("give either offset or timestamp")
        return self

    @property
    def since(self) -> datetime:
        """The time."""
        assert self.timestamp is not None
        return self.timestamp if self.timestamp.tzinfo else self.timestamp.replace(tzinfo=UTC)


class RabbitmqStreamConfig(ConnectionConfig):
    stream: str = Field(min_length=1)
    """The stream, which is a queue of the type stream."""
    start: Literal["first", "last", "next"] | StartAt = "first"
    """Where the first run begins; later ones resume. `last` is the last chunk of messages that is
    there, `next` what comes after it."""
    prefetch: int = Field(default=1000, ge=1, le=65_535)
    """How many messages the broker may send before the first of them is taken."""
    max_records: int | None = Field(default=None, ge=1)
    """The most messages in a batch."""
    on_data_loss: Literal["fail", "skip"] = "fail"
    """What to do when messages are gone before they were read. `skip` makes a dead letter of it."""


Span = tuple[int, int]
"""Offsets of a stream, without the last."""


class RabbitmqStreamSource(ReplayableSource[RabbitmqStreamConfig]):
    """Reads a stream of a RabbitMQ broker, by offsets, over AMQP.

    Large ranges are read by several tasks. A message's position is kept in the pipeline's state.

    ```yaml
    type: rabbitmq_stream
    url: amqp://localhost
    stream: clicks
    start: {timestamp: 2026-01-31T12:00:00Z}
    metadata: [offset]
    ```
    """

    parallelism = "a share of the stream"
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
    clients = ("aio_pika",)
    _kept: Cursor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def metadata(self) -> pa.Schema:
        return pa.schema([("offset", pa.int64()), *ABOUT])

    def check(self) -> None:
        Cursor(self.config).close()

    def sample(self, most: int) -> pa.BinaryArray:
        first, _, end = self._cursor.bounds("first")
        found: list[bytes] = []
        if first is not None:
            for some in self._cursor.read(first, min(end, first + most), _ignored):
                found += [message.body for _, message in some]
        return pa.array(found, pa.binary())

    def initial(self) -> Offset:
        start = self.config.start
        if start in ("last", "next"):
            _, last, end = self._cursor.bounds()
            return {"offset": last if start == "last" else end}
        if isinstance(start, StartAt) and start.offset is not None:
            return {"offset": start.offset}
        at, _, end = self._cursor.bounds(start.since if isinstance(start, StartAt) else "first")
        return {"offset": end if at is None else at}

    def latest(self, start: Offset) -> Offset:
        end = self._cursor.bounds().end or start["offset"]
        if end < start["offset"]:
            raise Permanent(
                f'cannot read the stream "{self.config.stream}" from offset {start["offset"]:,}: '
                f"its next message will have offset {end:,}",
                code="unknown-offset",
                hint="was the stream deleted and made again? --fresh starts over",
            )
        return {"offset": end}

    def advance(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        return {"offset": min(end["offset"], start["offset"] + self.config.max_records)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Span]:
        first, last = start["offset"], end["offset"]
        return [(at, min(at + SHARE, last)) for at in range(first, last, SHARE)]

    def read(self, partition: Span, read: Read) -> Iterator[pa.RecordBatch]:
        start, end = partition

        def gone(first: int) -> None:
            words = f"the messages from offset {start:,} to {min(first, end):,} are gone"
            if self.config.on_data_loss == "fail":
                raise Permanent(
                    f'cannot read the stream "{self.config.stream}": {words}',
                    code="data-gone",
                    hint="the stream keeps too little (x-max-age, x-max-length-bytes); "
                    "on_data_loss: skip goes on",
                )
            read.reject(None, self.config.stream, start, DecodeError(words, code="data-gone"))

        for some in kept(self.config).read(start, end, gone):
            yield self._batch(some, read.metadata)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError(f"the messages from offset {position} on are gone", code="data-gone")
        return super().decode(payload, origin, position)

    def lag(self, at: Offset, latest: Offset) -> int:
        return max(0, int(latest["offset"]) - int(at["offset"]))

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @property
    def _cursor(self) -> Cursor:
        if self._kept is not None and self._kept.closed:
            self.close()
        if self._kept is None:
            self._kept = Cursor(self.config)
        return self._kept

    def _batch(self, some: Sequence[Received], metadata: Sequence[str]) -> pa.RecordBatch:
        told = _told([message for _, message in some]) if metadata else []
        columns = [
            pa.array([message.body for _, message in some], pa.binary()),
            pa.repeat(self.config.stream, len(some)),
            pa.array([offset for offset, _ in some], pa.int64()),
            *(
                pa.array([each[name] for each in told], self.metadata().field(name).type)
                for name in metadata
            ),
        ]
        names = ["payload", "origin", "position", *metadata]
        return pa.RecordBatch.from_arrays(columns, names=names)


def _told(messages: Sequence[Any]) -> list[dict[str, Any]]:
    from aio_pika import IncomingMessage

    return [about(IncomingMessage(message)) for message in messages]


def _ignored(first: int) -> None:
    """Messages that are gone are no loss to a sample."""
