"""The source of Kafka topics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from penstock.connectors.kafka import reading
from penstock.connectors.kafka.client import require
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.group import Group
from penstock.connectors.kafka.position import Partition, Position, limited
from penstock.connectors.kafka.reading import METADATA, Cursor, Range
from penstock.connectors.kafka.topics import Discovery, Topics
from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import Capability, Config, Duration, Offset, Read, ReplayableSource

SMALL = 2_000
"""Ranges are read together by one task up to about this many records."""


class StartAt(Config):
    """A place to start from that is not an end of the topics."""

    timestamp: datetime | None = None
    """At the first record that is not older. Without a zone it is UTC."""
    offsets: dict[str, dict[int, int]] | None = None
    """By topic and partition, `{clicks: {0: 17}}`; partitions left out start from earliest."""

    @field_validator("offsets", mode="before")
    @classmethod
    def _by_topic(cls, offsets: object) -> object:
        if isinstance(offsets, dict) and not all(isinstance(o, dict) for o in offsets.values()):
            raise ValueError("give offsets by topic and partition, as in {clicks: {0: 17}}")
        return offsets

    @model_validator(mode="after")
    def _one_of(self) -> StartAt:
        if (self.timestamp is None) == (self.offsets is None):
            raise ValueError("give either timestamp or offsets")
        return self


class KafkaSourceConfig(ConnectionConfig):
    topic: str | list[str] | None = None
    """The topic, or several."""
    pattern: str | None = None
    """A regular expression that the whole name of a topic must match; new topics are found."""
    start: Literal["earliest", "latest", "committed"] | StartAt = "earliest"
    """Where the first run begins; later ones resume. `committed`: where the group stands."""
    group: str | None = None
    """The consumer group that progress is reported to; `penstock.PIPELINE.NODE` if left out."""
    isolation: Literal["committed", "uncommitted"] = "committed"
    """Whether records of transactions are read only once these are committed."""
    max_records: int | None = Field(default=None, ge=1)
    """The most records in a batch."""
    discovery_interval: Duration = 10.0
    """How often new partitions and topics are looked for."""
    on_data_loss: Literal["fail", "skip"] = "fail"
    """What to do when records are gone before they were read. `skip` makes a dead letter of it."""

    @field_validator("pattern")
    @classmethod
    def _valid(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _some_topic(self) -> KafkaSourceConfig:
        if not self.topic and not self.pattern:
            raise ValueError("give topic, or pattern for all topics that match it")
        return self


class KafkaSource(ReplayableSource[KafkaSourceConfig]):
    """Reads topics of Apache Kafka.

    The unit of parallelism is a partition of a topic; small shares of several are read together.
    Each record is read once: its position is kept in the pipeline's state. Progress is also
    committed to a consumer group, for the tools that show its lag.

    ```yaml
    type: kafka
    brokers: localhost:9092
    topic: clicks
    format: json
    schema: user STRING, page STRING, at TIMESTAMP
    metadata: [partition, offset]
    ```
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
    extra = "kafka"
    _known: Topics | None = None
    _found: Discovery | None = None
    _group: Group | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None, "_found": None, "_group": None}

    def format_for(self) -> str:
        return "json"

    def metadata(self) -> pa.Schema:
        return METADATA

    def examine(self) -> None:
        require()

    def check(self) -> None:
        self._topics().check()

    def sample(self, most: int) -> pa.BinaryArray:
        self.check()
        partitions, _ = self._discovery()()
        first, last = self._topics().earliest(partitions), self._topics().latest(partitions)
        ranges = [Range(p, first[p], min(last[p], first[p] + most)) for p in partitions]
        cursor = self._cursor()
        found: list[bytes | None] = []
        try:
            for runs in cursor.read(ranges):
                found += [message.value() for run in runs for message in run.messages]
                if len(found) >= most:
                    break
        finally:
            cursor.close()
        return pa.array(found[:most], pa.binary())

    def initial(self) -> Offset:
        self.check()
        partitions, ids = self._discovery()()
        return Position(self._beginning(partitions), ids).json()

    def latest(self, start: Offset) -> Offset:
        begun = Position.of(start)
        partitions, ids = self._discovery()()
        ends = self._topics().latest(partitions)
        if any(ends.get(p, -1) < at for p, at in begun.offsets.items()):
            self._discovery().expire()
            partitions, ids = self._discovery()()
            ends = self._topics().latest(partitions)
        end = Position(ends, ids)
        self._judge(begun, end)
        return end.json()

    def advance(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        return limited(Position.of(start), Position.of(end), self.config.max_records).json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[Range, ...]]:
        begun = Position.of(start)
        wanted = [each for each in begun.until(Position.of(end)) if each[1] != each[2]]
        earliest = self._topics().earliest([partition for partition, _, _ in wanted])
        shares: list[list[Range]] = []
        room = 0
        for partition, at, to in wanted:
            range_ = self._range(partition, at, to, earliest[partition])
            length = range_.end - range_.start
            if not shares or length > room:
                shares.append([])
                room = SMALL
            shares[-1].append(range_)
            room -= length
        return [tuple(share) for share in shares]

    def read(self, partition: tuple[Range, ...], read: Read) -> Iterator[pa.RecordBatch]:
        for range_ in partition:
            if range_.lost is not None:
                read.reject(None, str(range_.partition), range_.lost, _gone(range_))
        key = repr((self.config.client_properties(), self.config.given(), self._properties()))
        done = False
        try:
            for runs in reading.kept(key, self._cursor).read(partition):
                yield reading.payloads(runs, read.metadata)
            done = True
        finally:
            if not done:
                reading.forget(key)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError(f"the records from offset {position} of {origin} on are gone",
                              code="data-gone")  # fmt: skip
        return super().decode(payload, origin, position)

    def commit(self, end: Offset) -> None:
        if self._group is None:
            self._group = Group(self.config, self._group_name)
        self._group.commit(Position.of(end).offsets)

    def lag(self, at: Offset, latest: Offset) -> int:
        return sum(
            max(0, end - (start or 0))
            for _, start, end in Position.of(at).until(Position.of(latest))
        )

    @property
    def _named(self) -> tuple[str, ...]:
        topic = self.config.topic
        return () if topic is None else (topic,) if isinstance(topic, str) else tuple(topic)

    @property
    def _group_name(self) -> str:
        return self.config.group or f"penstock.{self.context.pipeline}.{self.context.node}"

    def _topics(self) -> Topics:
        if self._known is None:
            config = self.config
            self._known = Topics(config, self._named, config.pattern, config.isolation)
        return self._known

    def _discovery(self) -> Discovery:
        if self._found is None:
            self._found = Discovery(self._topics(), self.config.discovery_interval)
        return self._found

    def _cursor(self) -> Cursor:
        return Cursor(self.config, self._properties())

    def _properties(self) -> dict[str, Any]:
        return {
            "group.id": self._group_name,
            "isolation.level": f"read_{self.config.isolation}",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 100_000,
            "fetch.message.max.bytes": 8_388_608,
        }

    def _beginning(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        start, topics = self.config.start, self._topics()
        if start == "latest":
            return topics.latest(partitions)
        if start == "committed":
            return {**topics.earliest(partitions), **self._committed(partitions)}
        if start == "earliest":
            return topics.earliest(partitions)
        if start.timestamp is not None:
            return topics.since(partitions, _utc(start.timestamp))
        return {**topics.earliest(partitions), **self._given(start, partitions)}

    def _given(self, start: StartAt, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        given = {
            Partition(topic, number): at
            for topic, each in (start.offsets or {}).items()
            for number, at in each.items()
        }
        for partition in given:
            if partition not in partitions:
                raise Permanent(
                    f"cannot start at an offset of {partition}: there is no such partition",
                    code="unknown-partition",
                    hint=f"there are {', '.join(map(str, partitions))}" if partitions else None,
                )
        return given

    def _committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return Group(self.config, self._group_name).committed(partitions)

    def _judge(self, start: Position, end: Position) -> None:
        """Raises Permanent if records that were to be read next are gone, and that is not allowed.

        What is gone at the beginning of a partition is found in `partitions`.
        """
        if self.config.on_data_loss == "skip":
            return
        for topic in start.ids:
            if topic not in end.ids:
                raise _lost(f'topic "{topic}" is gone: it was deleted')
        for topic in start.renewed(end):
            raise _lost(f'topic "{topic}" is another than before: it was deleted and made again')
        for partition, at in start.offsets.items():
            if end.offsets.get(partition, -1) < at:
                raise _lost(
                    f"{partition} ends before offset {at:,}, where reading is to go on: "
                    "its log was cut off"
                )

    def _range(self, partition: Partition, at: int | None, to: int, earliest: int) -> Range:
        if at is None:
            return Range(partition, min(earliest, to), to)
        if at >= earliest:
            return Range(partition, at, to)
        if self.config.on_data_loss == "fail":
            raise _lost(
                f"offsets {at:,} to {min(earliest, to) - 1:,} of {partition} are gone: "
                "they were deleted before they were read"
            )
        return Range(partition, min(earliest, to), to, lost=at)


def _lost(what: str) -> Permanent:
    return Permanent(
        what,
        code="data-gone",
        hint="on_data_loss: skip goes on with what is there; --fresh starts over",
    )


def _gone(range_: Range) -> DecodeError:
    return DecodeError(
        f"offsets {range_.lost:,} to {range_.start - 1:,} of {range_.partition} are gone: "
        "they were deleted before they were read",
        code="data-gone",
    )


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
