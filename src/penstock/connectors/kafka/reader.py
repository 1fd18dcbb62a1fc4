"""Reads ranges of partitions in a task with a pooled consumer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.client import RESPONSE_TIMEOUT, create_consumer
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.connectors.kafka.errors import ErrorTracker, translate_error
from penstock.connectors.kafka.metadata import PartitionRecords, is_contiguous
from penstock.connectors.kafka.offsets import Partition
from penstock.core.errors import Transient
from penstock.sdk import ClientPool, Config

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

MAX_BATCH = 10_000
"""The largest number of messages of a poll."""
_POLL_TIMEOUT = 0.05
_PAUSED_POLL_TIMEOUT = 0.005


@dataclass(frozen=True)
class Range:
    """The records of one partition from offset `start` to before `end`."""

    partition: Partition
    start: int
    end: int
    lost: int | None = None
    """The first offset before `start` that was deleted before it was read."""


class ReaderConfig(Config):
    """The configuration of a reader."""

    connection: ConnectionConfig
    properties: dict[str, Any]


class PartitionReader:
    """A consumer that reads ranges of partitions.

    Transactions and compaction leave offsets without records, so a range ends where the consumer
    reports a position at or after its end, not with a record.
    """

    def __init__(self, config: ReaderConfig) -> None:
        self._consumer: Consumer
        self._tracker: ErrorTracker
        self._consumer, self._tracker = create_consumer(config.connection, config.properties)
        self._positions: dict[Partition, int] = {}

    def read(self, ranges: Sequence[Range]) -> Iterator[list[PartitionRecords]]:
        """Yields the records of the ranges; records of a partition are in order.

        Raises Transient after a timeout without records, Permanent for permanent errors.
        """
        unfinished = {range_.partition: range_ for range_ in ranges if range_.start < range_.end}
        self._tracker.clear()
        self._tracker.partitions = {str(partition) for partition in unfinished}
        paused = self._seek(list(unfinished.values()))
        last_record = time.monotonic()
        while unfinished:
            remaining = sum(
                range_.end - self._positions[range_.partition] for range_ in unfinished.values()
            )
            timeout = _PAUSED_POLL_TIMEOUT if paused else _POLL_TIMEOUT
            limit = min(MAX_BATCH, remaining + len(unfinished))
            messages = self._consumer.consume(limit, timeout)
            if messages:
                last_record = time.monotonic()
                groups = (
                    [(_partition_of(messages[0]), messages)]
                    if len(ranges) == 1 and is_contiguous(messages)
                    else _group_by_partition(messages)
                )
                records = self._select(groups, unfinished)
                paused = [
                    range_ for range_ in paused if self._positions[range_.partition] == range_.start
                ]
                if records:
                    yield records
            elif paused:
                self._wake([range_ for range_ in paused if range_.partition in unfinished])
                paused = []
            else:
                self._check_timeout(unfinished, last_record)
        self._pause([range_.partition for range_ in ranges])

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()

    def _seek(self, ranges: Sequence[Range]) -> list[Range]:
        """Assigns the ranges. Returns the ranges that were paused at their start."""
        from confluent_kafka import TopicPartition

        unassigned = [range_ for range_ in ranges if range_.partition not in self._positions]
        if unassigned:
            self._consumer.incremental_assign(
                [TopicPartition(*range_.partition, range_.start) for range_ in unassigned]
            )
        paused = [
            range_ for range_ in ranges if self._positions.get(range_.partition) == range_.start
        ]
        self._consumer.resume([TopicPartition(*range_.partition) for range_ in ranges])
        for range_ in ranges:
            if self._positions.get(range_.partition, range_.start) != range_.start:
                self._seek_partition(range_.partition, range_.start)
            self._positions[range_.partition] = range_.start
        return paused

    def _wake(self, ranges: Sequence[Range]) -> None:
        """Seeks, because a broker thread whose partitions are paused sleeps for a second."""
        for range_ in ranges:
            self._seek_partition(range_.partition, self._positions[range_.partition])

    def _seek_partition(self, partition: Partition, offset: int) -> None:
        """Moves the consumer to an offset of an assigned partition.

        librdkafka stops a partition when it prefetches an offset that was deleted. A stopped
        partition cannot seek, so it is assigned again.
        """
        from confluent_kafka import KafkaException, TopicPartition

        target = TopicPartition(*partition, offset)
        try:
            self._consumer.seek(target)
        except KafkaException as exception:
            error = exception.args[0]
            if error.name() != "_STATE":
                raise translate_error(error, f"read {partition}", self._tracker) from exception
            self._consumer.incremental_unassign([target])
            self._consumer.incremental_assign([target])

    def _pause(self, partitions: Sequence[Partition]) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.pause([TopicPartition(*partition) for partition in partitions])

    def _select(
        self, groups: Iterable[tuple[Any, list[Message]]], unfinished: dict[Partition, Range]
    ) -> list[PartitionRecords]:
        """Returns the records within the ranges. Removes finished ranges from `unfinished`."""
        selected = []
        for (topic, number), messages in groups:
            partition = Partition(topic, number)
            range_ = unfinished.get(partition)
            records = [message for message in messages if message.error() is None]
            if range_ is None:
                self._skip(partition, records)
                continue
            position = self._positions[partition]
            if records:
                self._positions[partition] = max(position, records[-1].offset() + 1)
                if records[0].offset() < position or records[-1].offset() >= range_.end:
                    records = [
                        record for record in records if position <= record.offset() < range_.end
                    ]
            for event in messages if len(records) < len(messages) else ():
                self._handle_event(event, range_)
            if records:
                selected.append(PartitionRecords(partition, records))
            if self._positions[partition] >= range_.end:
                del unfinished[partition]
        return selected

    def _skip(self, partition: Partition, records: Sequence[Message]) -> None:
        """Handles messages of a partition that is finished; the next range seeks back.

        Errors without a partition are those of the group coordinator, which a reader does not use.
        The tracker has all errors of brokers.
        """
        if records:
            self._positions[partition] = records[-1].offset() + 1

    def _handle_event(self, message: Message, range_: Range) -> None:
        error = message.error()
        if error is None:
            return
        if error.name() == "_PARTITION_EOF":
            position = self._positions[range_.partition]
            self._positions[range_.partition] = max(position, message.offset())
        elif error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            raise Transient(
                f"could not read {range_.partition} from offset {range_.start}: "
                "the offset was deleted",
                code="data-gone",
            )
        else:
            self._raise_error(message)

    def _raise_error(self, message: Message) -> None:
        """Raises the error of an event unless the client recovers from it."""
        error = message.error()
        if error is None or error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_PARTITION_EOF"):
            return
        raise translate_error(error, f"read topic {message.topic()!s}", self._tracker)

    def _check_timeout(self, unfinished: Mapping[Partition, Range], last_record: float) -> None:
        partitions = ", ".join(map(str, unfinished))
        self._tracker.raise_permanent(f"read {partitions}")
        if time.monotonic() - last_record > RESPONSE_TIMEOUT:
            raise Transient(
                f"could not read {partitions}: no records within {RESPONSE_TIMEOUT:.0f} s",
                code="unreachable",
                hint="Check that the leader of the partition is running.",
                detail=str(self._tracker.last.str()) if self._tracker.last else None,
            )


_pool = ClientPool(PartitionReader, PartitionReader.close)


def read_ranges(config: ReaderConfig, ranges: Sequence[Range]) -> Iterator[list[PartitionRecords]]:
    """Yields the records of ranges, read by the process's reader of a configuration.

    A reader that does not finish is discarded, because its positions are unknown.
    """
    finished = False
    try:
        yield from _pool.get(config).read(ranges)
        finished = True
    finally:
        if not finished:
            _pool.discard(config)


def _group_by_partition(messages: list[Message]) -> Iterator[tuple[Any, list[Message]]]:
    """Yields adjacent messages of the same partition together."""
    for partition, group in groupby(messages, _partition_of):
        yield partition, list(group)


def _partition_of(message: Message) -> tuple[Any, Any]:
    return message.topic(), message.partition()
