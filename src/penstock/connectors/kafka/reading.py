"""Reading ranges of partitions in a task, by a consumer that the process keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.connectors.kafka.client import ANSWER_SECONDS, consumer
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import Notes, fault
from penstock.connectors.kafka.position import Partition
from penstock.core.errors import Transient

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

BATCH = 10_000
_WAIT = 0.05
_NAP = 0.005

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
METADATA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("headers", HEADERS),
    ]
)


@dataclass(frozen=True)
class Range:
    """The records of one partition from `start` until before `end`."""

    partition: Partition
    start: int
    end: int
    lost: int | None = None
    """The first of the offsets before `start` that should have been read and are gone."""


class Run(NamedTuple):
    """Records of one partition, in order."""

    partition: Partition
    messages: list[Message]

    @property
    def origin(self) -> str:
        """What names the partition in dead letters."""
        return f"{self.partition.topic}:{self.partition.number}"

    def offsets(self) -> pa.Array:
        """The offset of each record."""
        if _gapless(self.messages):
            first = self.messages[0].offset()
            return pa.array(np.arange(first, first + len(self.messages)))
        return pa.array([m.offset() for m in self.messages], pa.int64())


class Cursor:
    """A consumer that is told where to read.

    Transactions and compaction leave offsets without a record, so that a range ends where the
    consumer says it has come past its end, not with a certain record.
    """

    def __init__(self, config: ConnectionConfig, properties: Mapping[str, Any]) -> None:
        self._consumer: Consumer
        self._notes: Notes
        self._consumer, self._notes = consumer(config, dict(properties))
        self._at: dict[Partition, int] = {}

    def read(self, ranges: Sequence[Range]) -> Iterator[list[Run]]:
        """The records of the ranges, as they come; those of a partition in order.

        Raises Transient where nothing comes for a while, Permanent where the cluster refuses.
        """
        open_ = {each.partition: each for each in ranges if each.start < each.end}
        asleep = self._go_to(list(open_.values()))
        heard = time.monotonic()
        while open_:
            left = sum(each.end - self._at[each.partition] for each in open_.values())
            wait = _NAP if asleep else _WAIT
            messages = self._consumer.consume(min(BATCH, left + len(open_)), wait)
            if messages:
                heard = time.monotonic()
                grouped = (
                    [(_partition_of(messages[0]), messages)]
                    if len(ranges) == 1 and _gapless(messages)
                    else _by_partition(messages)
                )
                runs = self._sorted_out(grouped, open_)
                asleep = [each for each in asleep if self._at[each.partition] == each.start]
                if runs:
                    yield runs
            elif asleep:
                self._wake([each for each in asleep if each.partition in open_])
                asleep = []
            else:
                self._patience(open_, heard)
        self._pause([each.partition for each in ranges])

    def close(self) -> None:
        """Lets go of the connections."""
        self._consumer.close()

    def _go_to(self, ranges: Sequence[Range]) -> list[Range]:
        """Returns those where nothing changes but that they are not paused any more."""
        from confluent_kafka import TopicPartition

        new = [each for each in ranges if each.partition not in self._at]
        if new:
            self._consumer.incremental_assign(
                [TopicPartition(*each.partition, each.start) for each in new]
            )
        resumed = [each for each in ranges if self._at.get(each.partition) == each.start]
        self._consumer.resume([TopicPartition(*each.partition) for each in ranges])
        for each in ranges:
            if self._at.get(each.partition, each.start) != each.start:
                self._consumer.seek(TopicPartition(*each.partition, each.start))
            self._at[each.partition] = each.start
        return resumed

    def _wake(self, ranges: Sequence[Range]) -> None:
        """A broker's thread without open partitions sleeps for a second; only a seek ends that."""
        from confluent_kafka import TopicPartition

        for each in ranges:
            at = self._at[each.partition]
            self._consumer.seek(TopicPartition(*each.partition, at))

    def _pause(self, partitions: Sequence[Partition]) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.pause([TopicPartition(*each) for each in partitions])

    def _sorted_out(
        self, grouped: Iterable[tuple[Any, list[Message]]], open_: dict[Partition, Range]
    ) -> list[Run]:
        """The records that were asked for. Ranges that are done are taken out of `open_`."""
        found = []
        for (topic, number), each in grouped:
            partition = Partition(topic, number)
            range_ = open_.get(partition)
            records = [m for m in each if m.error() is None]
            if range_ is None:
                self._beside(partition, each, records)
                continue
            at = self._at[partition]
            if records:
                self._at[partition] = max(at, records[-1].offset() + 1)
                if records[0].offset() < at or records[-1].offset() >= range_.end:
                    records = [m for m in records if at <= m.offset() < range_.end]
            for event in each if len(records) < len(each) else ():
                self._event(event, range_)
            if records:
                found.append(Run(partition, records))
            if self._at[partition] >= range_.end:
                del open_[partition]
        return found

    def _beside(
        self, partition: Partition, each: Sequence[Message], records: Sequence[Message]
    ) -> None:
        """What came of a partition that nothing more is wanted of: the next range goes back."""
        if records:
            self._at[partition] = records[-1].offset() + 1
        elif partition.topic is None:
            self._raise(each[0])

    def _event(self, message: Message, range_: Range) -> None:
        error = message.error()
        if error is None:
            return
        if error.name() == "_PARTITION_EOF":
            self._at[range_.partition] = max(self._at[range_.partition], message.offset())
        elif error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            raise Transient(
                f"could not read {range_.partition} from offset {range_.start}: it is gone",
                code="data-gone",
            )
        else:
            self._raise(message)

    def _raise(self, message: Message) -> None:
        """Raises what an event without a partition of ours says, if it is the end."""
        error = message.error()
        if error is None or error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_PARTITION_EOF"):
            return
        raise fault(error, f"read topic {message.topic()!s}", self._notes)

    def _patience(self, open_: Mapping[Partition, Range], heard: float) -> None:
        shown = ", ".join(str(each) for each in open_)
        self._notes.raise_refused(f"read {shown}")
        if time.monotonic() - heard > ANSWER_SECONDS:
            raise Transient(
                f"could not read {shown}: nothing came for {ANSWER_SECONDS:.0f} s",
                code="unreachable",
                hint="is the broker running that leads the partition?",
                detail=str(self._notes.last.str()) if self._notes.last else None,
            )


_cursors: dict[str, Cursor] = {}
"""Those of this process, by their configuration."""


def kept(key: str, make: Callable[[], Cursor]) -> Cursor:
    """The process's cursor of a configuration, made if need be."""
    if key not in _cursors:
        _cursors[key] = make()
    return _cursors[key]


def forget(key: str) -> None:
    """Closes a cursor that failed in the middle: it does not know where it stands."""
    cursor = _cursors.pop(key, None)
    if cursor is not None:
        cursor.close()


def _gapless(messages: list[Message]) -> bool:
    """Whether records of one partition follow each other without a gap, judged by the ends."""
    first, last = messages[0], messages[-1]
    distance = (last.offset() or 0) - (first.offset() or 0)
    return _partition_of(first) == _partition_of(last) and distance == len(messages) - 1


def _by_partition(messages: list[Message]) -> Iterator[tuple[Any, list[Message]]]:
    """Neighbours of the same partition together."""
    for partition, each in groupby(messages, _partition_of):
        yield partition, list(each)


def _partition_of(message: Message) -> tuple[Any, Any]:
    return message.topic(), message.partition()


def payloads(runs: Sequence[Run], metadata: Sequence[str]) -> pa.RecordBatch:
    """Records as a batch of `PAYLOAD` and the metadata columns asked for."""
    messages = runs[0].messages if len(runs) == 1 else [m for run in runs for m in run.messages]
    columns: list[pa.Array] = [
        pa.array([m.value() for m in messages], pa.binary()),
        _joined([pa.repeat(run.origin, len(run.messages)) for run in runs]),
        _joined([run.offsets() for run in runs]),
    ]
    columns += [_metadata(messages, name) for name in metadata]
    return pa.RecordBatch.from_arrays(columns, names=["payload", "origin", "position", *metadata])


def _joined(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _metadata(messages: Sequence[Message], name: str) -> pa.Array:
    type_ = METADATA.field(name).type
    if name == "timestamp":
        times = [m.timestamp() for m in messages]
        return pa.array([at * 1000 if kind else None for kind, at in times], type_)
    if name == "headers":
        return pa.array([_headers(m) for m in messages], type_)
    return pa.array([getattr(m, name)() for m in messages], type_)


def _headers(message: Message) -> list[dict[str, Any]] | None:
    headers = message.headers()
    if headers is None:
        return None
    return [{"key": key, "value": value} for key, value in headers]
