"""The source of Kafka topics."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from penstock.connectors.kafka import loss, reading
from penstock.connectors.kafka.client import PAUSE, examine
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.group import Group
from penstock.connectors.kafka.position import Partition, Position, limited
from penstock.connectors.kafka.reading import METADATA, Cursor, Range
from penstock.connectors.kafka.start import Reset, Start, beginning
from penstock.connectors.kafka.topics import Discovery, Topics
from penstock.core.errors import DecodeError
from penstock.sdk import Capability, Duration, Offset, Read, ReplayableSource

DOUBT_SECONDS = 2.0
"""A broker that has just started does not know all topics: they are looked for so long."""
SMALL = 2_000
"""Ranges are read together by one task up to about this many records."""


class KafkaSourceConfig(ConnectionConfig):
    topic: str | list[str] | None = None
    """The topic, or several."""
    pattern: str | None = None
    """A regular expression that the whole name of a topic must match; new topics are found."""
    start: Start = "earliest"
    """Where the first run begins; later ones resume. `committed`: where the group stands."""
    reset: Reset = "earliest"
    """Where `start: committed` begins in partitions of which the group has committed nothing."""
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
        if "reset" in self.model_fields_set and self.start != "committed":
            raise ValueError("reset goes together with start: committed")
        return self


class KafkaSource(ReplayableSource[KafkaSourceConfig]):
    """Reads topics of Apache Kafka.

    `format` (json, if it is not said) decodes the values of records. Their keys, headers and places
    are metadata columns.

    Small shares of several partitions are read together. A record's position is kept in the
    pipeline's state. Progress is also committed to a consumer group, for the tools that show its
    lag.

    ```yaml
    type: kafka
    brokers: localhost:9092
    topic: clicks
    format: json
    schema: user STRING, page STRING, at TIMESTAMP
    metadata: [partition, offset]
    ```
    """

    parallelism = "a partition of a topic"
    acknowledges = "offsets are committed to the group once the batch is in all sinks"
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
    clients = ("confluent_kafka",)
    _known: Topics | None = None
    _found: Discovery | None = None
    _group: Group | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None, "_found": None, "_group": None}

    def metadata(self) -> pa.Schema:
        return METADATA

    def topic(self) -> str | None:
        return self._named[0] if len(self._named) == 1 and not self.config.pattern else None

    def examine(self) -> None:
        examine(self.config)

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
        return self._discovery().ask(self._beginning).json()

    def latest(self, start: Offset) -> Offset:
        begun = Position.of(start)
        end = self._discovery().ask(self._end)
        until = time.monotonic() + DOUBT_SECONDS
        while begun.beyond(end) and time.monotonic() < until:
            time.sleep(PAUSE)
            self._discovery().expire()
            end = self._discovery().ask(self._end)
        if self.config.on_data_loss == "fail":
            loss.judge(begun, end)
        return end.json()

    def advance(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        begun, whole = Position.of(start), Position.of(end)
        new = self._topics().earliest([p for p, at, _ in begun.until(whole) if at is None])
        known = {p: at for p, at, _ in begun.until(whole) if at is not None}
        start_ = Position({**known, **new}, whole.ids)
        return limited(start_, whole, self.config.max_records).json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[Range, ...]]:
        begun, whole = Position.of(start), Position.of(end)
        wanted = [each for each in begun.until(whole) if each[1] != each[2]]

        def there(_: object, ids: Mapping[str, str]) -> dict[Partition, int]:
            same = [p for p, _, _ in wanted if ids.get(p.topic) == whole.ids.get(p.topic)]
            return self._topics().earliest(same)

        earliest = self._discovery().ask(there)
        renewed = begun.renewed(whole)
        shares: list[list[Range]] = []
        room = 0
        for partition, at, to in wanted:
            range_ = self._range(partition, at, to, earliest.get(partition, to))
            if partition.topic in renewed:
                range_ = replace(range_, lost=begun.offsets.get(partition))
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
                read.reject(None, str(range_.partition), range_.lost, loss.gone(range_))
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

    def _end(self, partitions: Sequence[Partition], ids: Mapping[str, str]) -> Position:
        return Position(self._topics().latest(partitions), ids)

    def _cursor(self) -> Cursor:
        return Cursor(self.config, self._properties())

    def _properties(self) -> dict[str, Any]:
        return {
            "group.id": self._group_name,
            "isolation.level": f"read_{self.config.isolation}",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 100_000,
            "fetch.queue.backoff.ms": 10,
            "fetch.message.max.bytes": 8_388_608,
        }

    def _beginning(self, partitions: Sequence[Partition], ids: Mapping[str, str]) -> Position:
        with closing(Group(self.config, self._group_name)) as group:
            start = beginning(
                self.config.start, self.config.reset, partitions, self._topics(), group
            )
        return Position(start, ids)

    def _range(self, partition: Partition, at: int | None, to: int, first: int) -> Range:
        """What there is to read of a partition that begins at `first` now; `at`: None if new."""
        if at is None or first <= at:
            return Range(partition, min(first, to) if at is None else at, to)
        if self.config.on_data_loss == "fail":
            raise loss.lost(loss.told(partition, at, min(first, to)))
        return Range(partition, min(first, to), to, lost=at)
