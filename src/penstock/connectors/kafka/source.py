"""Kafka source."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.access import check_operation
from penstock.connectors.kafka.client import RETRY_INTERVAL, Admin, check_properties
from penstock.connectors.kafka.config import ConnectionConfig, KafkaSourceConfig, KafkaStartAt
from penstock.connectors.kafka.data_loss import check_data_loss, data_loss_error, describe_gap
from penstock.connectors.kafka.discovery import Discovery, Topics
from penstock.connectors.kafka.group import ConsumerGroup
from penstock.connectors.kafka.metadata import METADATA, record_batch, with_valid_times
from penstock.connectors.kafka.offsets import Partition, TopicOffsets, limit_offsets
from penstock.connectors.kafka.reader import PartitionReader, Range, ReaderConfig, read_ranges
from penstock.connectors.kafka.start import start_offsets
from penstock.core.errors import DecodeError, PlanError
from penstock.sdk import Capability, Offset, Read, ReplayableSource
from penstock.sdk.messages.listing import ListedTopics
from penstock.sdk.phases import PositionedSource

STARTUP_TIMEOUT = 2.0
"""The longest time until a broker has the metadata of all topics after its start, in seconds."""
TASK_SIZE = 2_000
"""The number of records up to which several ranges are read by one task."""


class KafkaSource(ReplayableSource[KafkaSourceConfig], PositionedSource, ListedTopics):
    """Reads topics of Apache Kafka.

    `format` (by default json) decodes the values of records. Keys, headers and offsets are
    metadata columns.

    Short ranges of several partitions are read by one task. Offsets are stored in the pipeline's
    state. They are also committed to a consumer group for monitoring of the lag.

    A compacted topic is a table of the latest record of each key. With `tombstones: delete` and a
    `primary_key` its records are changes: updates of rows, and deletes. With `lookup: true` a
    stream is joined with the table.

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
            Capability.LOOKUP,
            Capability.BYTES,
        }
    )
    extra = "kafka"
    client_modules = ("confluent_kafka",)
    partitioned = True
    _cached_topics: Topics | None = None
    _cached_discovery: Discovery | None = None
    _group: ConsumerGroup | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.deletes_by_key = self.config.tombstones == "delete"
        self.key_format = self.config.key_format

    def __getstate__(self) -> dict[str, Any]:
        clients = {"_cached_topics": None, "_cached_discovery": None, "_group": None}
        return {**self.__dict__, **clients}

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def topic(self) -> str | None:
        names = self.config.topics
        return names[0] if len(names) == 1 and not self.config.pattern else None

    @classmethod
    def topic_names(cls, config: KafkaSourceConfig, option: str) -> list[str]:
        names = Admin(config).topics("list topics")
        return [name for name in names if not name.startswith("__")]

    def validate(self) -> None:
        check_properties(self.config)

    def check(self) -> None:
        self._topics.check()

    def check_access(self) -> bool:
        self.check()
        names = self.config.topics
        return bool(names) and check_operation(Admin(self.config), names, "READ")

    def sample(self, max_records: int) -> pa.BinaryArray:
        self.check()
        partitions, _ = self._discovery.partitions()
        first, last = self._topics.earliest(partitions), self._topics.latest(partitions)
        ranges = [
            Range(partition, first[partition], min(last[partition], first[partition] + max_records))
            for partition in partitions
        ]
        payloads: list[bytes | None] = []
        with closing(PartitionReader(self._reader_config())) as reader:
            for records in reader.read(ranges):
                payloads += [message.value() for part in records for message in part.messages]
                if len(payloads) >= max_records:
                    break
        return pa.array(payloads[:max_records], pa.binary())

    def initial_offset(self) -> Offset:
        self.check()
        return self._discovery.query(self._start_offsets).to_json()

    def latest_offset(self, start: Offset) -> Offset:
        first = TopicOffsets.parse(start)
        end = self._discovery.query(self._latest_offsets)
        deadline = time.monotonic() + STARTUP_TIMEOUT
        while first.exceeds(end) and time.monotonic() < deadline:
            time.sleep(RETRY_INTERVAL)
            self._discovery.expire()
            end = self._discovery.query(self._latest_offsets)
        if self.config.on_data_loss == "fail":
            check_data_loss(first, end)
        return end.to_json()

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        first, last = TopicOffsets.parse(start), TopicOffsets.parse(end)
        starts = {partition: offset for partition, offset, _ in first.ranges(last)}
        stored = {partition: offset for partition, offset in starts.items() if offset is not None}
        earliest = self._topics.earliest(
            [partition for partition in starts if partition not in stored]
        )
        complete = TopicOffsets({**stored, **earliest}, last.ids)
        return limit_offsets(complete, last, self.config.max_records).to_json()

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[Range, ...]]:
        first, last = TopicOffsets.parse(start), TopicOffsets.parse(end)
        changed = [range_ for range_ in first.ranges(last) if range_[1] != range_[2]]

        def earliest_existing(_: object, ids: Mapping[str, str]) -> dict[Partition, int]:
            existing = [
                partition
                for partition, _, _ in changed
                if ids.get(partition.topic) == last.ids.get(partition.topic)
            ]
            return self._topics.earliest(existing)

        earliest = self._discovery.query(earliest_existing)
        recreated = first.recreated_topics(last)
        tasks: list[list[Range]] = []
        free_records = 0
        for partition, offset, end_offset in changed:
            available = earliest.get(partition, end_offset)
            range_ = self._range(partition, offset, end_offset, available)
            if partition.topic in recreated:
                range_ = replace(range_, lost=first.offsets.get(partition))
            length = range_.end - range_.start
            if not tasks or length > free_records:
                tasks.append([])
                free_records = TASK_SIZE
            tasks[-1].append(range_)
            free_records -= length
        return [tuple(task) for task in tasks]

    def read(self, partition: tuple[Range, ...], read: Read) -> Iterator[pa.RecordBatch]:
        for range_ in partition:
            if range_.lost is not None:
                message = describe_gap(range_.partition, range_.lost, range_.start)
                error = DecodeError(message, code="data-gone")
                read.reject(None, str(range_.partition), range_.lost, error)
        for records in read_ranges(self._reader_config(), partition):
            if "timestamp" in read.metadata:
                records = list(with_valid_times(records, read))
            if any(part.messages for part in records):
                yield record_batch(records, read.metadata, with_keys=self.deletes_by_key)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None and self.deletes_by_key:
            raise DecodeError("a tombstone cannot be decoded again", code="not-replayable")
        if payload is None:
            message = f"records of {origin} from offset {position} were deleted"
            raise DecodeError(message, code="data-gone")
        return super().decode(payload, origin, position)

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        topic, _, number = origin.rpartition(":")
        return {"topic": topic, "partition": int(number), "offset": position}

    def commit(self, end: Offset) -> None:
        if self._group is None:
            self._group = ConsumerGroup(self.config, self._group_name)
        self._group.commit(TopicOffsets.parse(end).offsets)

    def close(self) -> None:
        """Frees the clients, whose threads otherwise last until the garbage is collected."""
        if self._group is not None:
            self._group.close()
        self._group = self._cached_topics = self._cached_discovery = None

    def prepare_lookup(self) -> None:
        if not self.primary_key:
            raise PlanError(
                "a lookup table in a topic has the last record of each key, and no primary key",
                code="missing-option",
                hint="Set primary_key: [COLUMN, ...].",
            )
        self.deletes_by_key = True

    def partition_offsets(self, offset: Offset) -> Mapping[str, int]:
        offsets = TopicOffsets.parse(offset).offsets
        return {partition.origin: number for partition, number in offsets.items()}

    def lag(self, current: Offset, latest: Offset) -> int:
        ranges = TopicOffsets.parse(current).ranges(TopicOffsets.parse(latest))
        return sum(max(0, end - (start or 0)) for _, start, end in ranges)

    @property
    def _group_name(self) -> str:
        return self.config.group or f"penstock.{self.context.pipeline}.{self.context.node}"

    @property
    def _topics(self) -> Topics:
        if self._cached_topics is None:
            self._cached_topics = Topics(self.config)
        return self._cached_topics

    @property
    def _discovery(self) -> Discovery:
        if self._cached_discovery is None:
            self._cached_discovery = Discovery(self._topics, self.config.discovery_interval)
        return self._cached_discovery

    def _reader_config(self) -> ReaderConfig:
        connection = {name: getattr(self.config, name) for name in ConnectionConfig.model_fields}
        properties = {
            "group.id": self._group_name,
            "isolation.level": f"read_{self.config.isolation}",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 100_000,
            "fetch.queue.backoff.ms": 10,
            "fetch.message.max.bytes": 8_388_608,
        }
        return ReaderConfig(
            connection=ConnectionConfig.model_construct(**connection), properties=properties
        )

    def offset_after(self, positions: Mapping[int, int]) -> Offset:
        topic = self.topic()
        assert topic is not None
        offsets = {topic: {number: offset + 1 for number, offset in positions.items()}}
        start = KafkaStartAt(offsets=offsets)
        after = KafkaSource(self.config.model_copy(update={"start": start}), self.context)
        try:
            return after.initial_offset()
        finally:
            after.close()

    def _start_offsets(
        self, partitions: Sequence[Partition], ids: Mapping[str, str]
    ) -> TopicOffsets:
        with closing(ConsumerGroup(self.config, self._group_name)) as group:
            offsets = start_offsets(self.config, partitions, self._topics, group)
        return TopicOffsets(offsets, ids)

    def _latest_offsets(
        self, partitions: Sequence[Partition], ids: Mapping[str, str]
    ) -> TopicOffsets:
        return TopicOffsets(self._topics.latest(partitions), ids)

    def _range(self, partition: Partition, start: int | None, end: int, available: int) -> Range:
        """Returns the range to read of a partition whose records are available from an offset.

        `start` is None for a new partition. Raises Permanent on data loss, as configured.
        """
        first = min(available, end)
        if start is None or available <= start:
            return Range(partition, first if start is None else start, end)
        if self.config.on_data_loss == "fail":
            raise data_loss_error(describe_gap(partition, start, first))
        return Range(partition, first, end, lost=start)
