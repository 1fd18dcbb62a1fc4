"""Watermarks of partitions: the watermark of a source is the least of those of its partitions.

Spark's watermark of a source follows the latest row of all partitions. While a backlog is read, the
rows of a partition that is behind another one would be late. The tracker of the query therefore
receives a second watermark of the source, the least of its partitions. It waits for a partition

- that has rows left to read;
- whose last rows are not older than the idle time, by the times at which batches were planned.

Once all partitions are idle, the watermark follows the latest row.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.core.files.durable import replace_durably
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.sources.source_readers import IDLE, UNREAD
from penstock.engine.tasks.dead_letter_writer import COUNT
from penstock.engine.watermarks.watermark_tracker import WatermarkTracker
from penstock.plan.node import Node
from penstock.sdk import ReplayableSource

IDLE_TIME = 10.0
"""The idle time of the partitions of a source without `watermark.idle`, in seconds."""
FILE = "penstock-partitions.json"


@dataclass(frozen=True)
class PartitionedSource:
    """A source with watermarks of partitions.

    `watermark` is its ID in Spark, `delay` and `idle` are in seconds.
    """

    name: str
    watermark: str
    delay: float
    idle: float


@dataclass
class Partition:
    """A partition of a source.

    `latest` is its latest event time in microseconds, `active` the time at which the last batch
    with rows was planned, in milliseconds. Both are since 1970.
    """

    latest: int
    active: int


@dataclass
class PartitionWatermarks:
    """The watermarks of the partitions of a query, durable in its checkpoint.

    `spool` has the counts of the tasks of its batches.
    """

    session: SparkSession
    checkpoint: Path
    spool: Path
    sources: tuple[PartitionedSource, ...]
    _partitions: dict[str, dict[str, Partition]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._file = self.checkpoint / FILE
        if self._file.exists():
            self._partitions = {
                source: {name: Partition(*times) for name, times in partitions.items()}
                for source, partitions in json.loads(self._file.read_text("utf-8")).items()
            }

    def advance(self, query_id: str, batch: int) -> None:
        """Sets the watermarks of the sources after the rows of a batch.

        Called before Spark moves the watermark of the query.
        """
        query = self.session.streams.get(query_id)
        if query is None:
            return
        log, tracker = OffsetLog(self.checkpoint), WatermarkTracker(self.session, query)
        planned, offsets, known = log.time(batch), log.end_offsets(batch), tracker.watermarks()
        if self._observe(batch, planned):
            self._save()
        for source in self.sources:
            offset = offsets.get(source.name, {})
            unread = frozenset(offset.get(UNREAD, ()))
            idle = bool(offset.get(IDLE))
            watermark = self._latest(source) if idle else self._least(source, planned, unread)
            name = partitions_id(source.watermark)
            if name not in known or known[name] < watermark:
                tracker.set(name, watermark)

    def _observe(self, batch: int, planned: int) -> bool:
        """Adds the rows of a batch. Returns whether there are any."""
        found = False
        for source in self.sources:
            partitions = self._partitions.setdefault(source.name, {})
            for name, latest in self._read(source.name, batch):
                found = True
                partition = partitions.setdefault(name, Partition(latest, planned))
                partition.latest = max(partition.latest, latest)
                partition.active = planned
        return found

    def _read(self, source: str, batch: int) -> Iterator[tuple[str, int]]:
        """Yields partitions of a batch with their latest event times, as their tasks report."""
        for path in (self.spool / str(batch)).rglob(f"{source}-decode-*.{COUNT}"):
            yield from json.loads(path.read_text("utf-8"))["latest"].items()

    def _save(self) -> None:
        text = {
            source: {name: [item.latest, item.active] for name, item in partitions.items()}
            for source, partitions in self._partitions.items()
        }
        replace_durably(self._file, json.dumps(text))

    def _latest(self, source: PartitionedSource) -> int:
        times = [partition.latest for partition in self._partitions[source.name].values()]
        return _watermark(max(times, default=0), source)

    def _least(self, source: PartitionedSource, planned: int, unread: frozenset[str]) -> int:
        partitions = self._partitions[source.name]
        if unread - partitions.keys():
            return 0
        times = [
            partition.latest
            for name, partition in partitions.items()
            if name in unread or planned - partition.active < source.idle * 1000
        ]
        return _watermark(min(times), source) if times else self._latest(source)


def partition_idle_time(node: Node) -> float | None:
    """Returns the seconds after which partitions of a source are idle; None without partitions.

    The partition of a computed event time is not known.
    """
    watermark = node.watermark
    if watermark is None or watermark.bound is not None or node.computes_event_time:
        return None
    source = node.source
    partitioned = isinstance(source, ReplayableSource) and source.partitioned
    return watermark.idle or IDLE_TIME if partitioned else None


def partitions_id(watermark: str) -> str:
    """Returns the ID of the least watermark of the partitions, by the ID of the source's."""
    return str(uuid.uuid5(uuid.UUID(watermark), "partitions"))


def _watermark(time: int, source: PartitionedSource) -> int:
    """Returns the watermark at a time in microseconds, in milliseconds."""
    return max(0, time // 1000 - round(source.delay * 1000))
