"""Spark's readers of a source, for streams and batches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from penstock.core.error_codec import encode_errors
from penstock.core.errors import StateError
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.sources.source import SourceTask
from penstock.engine.tasks import task as spark_task

CLOSED = "closed"
"""The key of an offset after the sentinel row."""
WHOLE = "whole"
"""The key of an offset at the end of the whole input, which is a batch even without rows."""
UNREAD = "unread"
"""The key of an offset with the partitions that have records after it."""
IDLE = "idle"
"""The key of an offset at which all partitions are idle, which is a batch without rows."""
_KEYS = frozenset({CLOSED, WHOLE, UNREAD, IDLE})
CHANGED_SCHEMA = "changed-schema"
"""The code of the error that ends a query before rows with other columns."""
POLL_INTERVAL = 0.15
"""The time between polls of an idle source, in seconds."""


class SourcePartition(InputPartition):
    """A partition of a source."""

    def __init__(self, value: Any, number: int) -> None:
        self.value = value
        self.number = number


class SentinelPartition(InputPartition):
    """The partition of the sentinel row."""

    def __init__(self) -> None:
        pass


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's stream reader of a replayable source."""

    def __init__(self, task: SourceTask) -> None:
        self.task = task
        self.source = task.source
        self._snapshot: Mapping[str, Any] | None = None
        self._until_snapshot = False
        self._reported: Mapping[str, Any] | None = None
        self._idle = False
        self._active = time.monotonic()
        self._wait = task.gap.at(task.spool.node) if task.gap is not None else None

    @property
    def node(self) -> str:
        """The name of the source, for errors."""
        return self.task.spool.node

    def prepareForTriggerAvailableNow(self) -> None:
        self._until_snapshot = True

    @encode_errors
    def initialOffset(self) -> dict[str, Any]:
        if self.task.checkpoint is None:
            return dict(self.source.initial_offset())
        starts, name = StartOffsets(Path(self.task.checkpoint)), self.task.spool.node
        offset = starts.read().get(name)
        if offset is None:
            offset = self.source.initial_offset()
            starts.record(name, offset)
        return dict(offset)

    @encode_errors
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if self.task.sentinel_only:
            return {**start, CLOSED: True}
        if start.get(WHOLE) or start.get(CLOSED):
            return start
        end = self._next_offset(start)
        reached = source_offset(end) in (self._snapshot, source_offset(start))
        return {**end, CLOSED: True} if self.task.closes_windows and reached else end

    def _next_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        offset = source_offset(start)
        if self._until_snapshot and self._snapshot is not None:
            end = self._snapshot
        else:
            end = self._reported = self._latest(offset)
            if self._until_snapshot:
                self._snapshot = end
            elif self._wait is not None and not self._wait.is_over(end, self._unread(offset, end)):
                return start
        if self.task.whole_input:
            return {**end, WHOLE: True}
        idle = self.task.partition_idle
        if idle is not None:
            return self._partitioned_offset(start, offset, end, idle)
        return self._before_change(offset, self.source.limit_batch(offset, end))

    def _unread(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> int | None:
        """Returns the number of new records, None if it is not known or not needed."""
        if self.task.gap is None or self.task.gap.records is None:
            return None
        if start == end:
            return 0
        counts = self.source.lag_unit in {"records", "messages"}
        return self.source.lag(start, end) if counts else None

    def _before_change(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the end of a batch whose rows have the columns of the source.

        Raises StateError if the next row has others.
        """
        change = self.source.schema_change(start, end)
        if change == start:
            raise StateError(
                f'the columns of the source "{self.task.spool.node}" have changed',
                code=CHANGED_SCHEMA, hint="Run the pipeline again.",
            )  # fmt: skip
        return dict(end if change is None else change)

    def _partitioned_offset(
        self, start: dict[str, Any], offset: Mapping[str, Any], end: Mapping[str, Any], idle: float
    ) -> dict[str, Any]:
        """Returns the offset of the next batch, with `UNREAD` or `IDLE`."""
        latest = self.source.partition_offsets(end)
        if end != offset:
            self._active = time.monotonic()
            limited = self.source.limit_batch(offset, end)
            reached = self.source.partition_offsets(limited)
            unread = sorted(name for name in latest if reached.get(name) != latest[name])
            return {**limited, UNREAD: unread} if unread else dict(limited)
        if start.get(IDLE) or self._until_snapshot or len(latest) < 2:
            return start
        return {**offset, IDLE: True} if time.monotonic() - self._active >= idle else start

    def _latest(self, start: dict[str, Any]) -> Mapping[str, Any]:
        """Returns the latest offset. Polls only if the last call returned no new data either.

        The first empty batch is reported at once, because Spark may close windows in the batch.
        """
        end = self.source.latest_offset(start)
        deadline = time.monotonic() + self.task.poll_timeout
        while self._idle and end == start and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL)
            end = self.source.latest_offset(start)
        self._idle = end == start
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return dict(self._reported) if self._reported is not None else None

    @encode_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        values = self.source.partitions(source_offset(start), source_offset(end))
        partitions: list[InputPartition] = [
            SourcePartition(value, i) for i, value in enumerate(values)
        ]
        if end.get(CLOSED) and not start.get(CLOSED):
            partitions.append(SentinelPartition())
        return partitions

    @encode_errors
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SentinelPartition):
            yield self.task.sentinel()
            return
        assert isinstance(partition, SourcePartition)
        dead_letters = self.task.spool.begin(spark_task.batch_number(), partition.number)
        try:
            yield from self.task.read(partition.value, dead_letters, spark_task.is_retry())
        except GeneratorExit:  # a LIMIT needs no further rows
            dead_letters.close(complete=False)
            raise
        dead_letters.close()

    @encode_errors
    def commit(self, end: dict[str, Any]) -> None:
        if self.task.commits:
            self.source.commit(source_offset(end))

    @encode_errors
    def stop(self) -> None:
        self.source.close()


class BatchReader(DataSourceReader):
    """Spark's batch reader of a source, from its initial to its latest offset."""

    def __init__(self, task: SourceTask) -> None:
        self.task = task

    @property
    def node(self) -> str:
        """The name of the source, for errors."""
        return self.task.spool.node

    @encode_errors
    def partitions(self) -> list[InputPartition]:
        source = self.task.source
        start = source.initial_offset()
        values = source.partitions(start, source.latest_offset(start))
        return [SourcePartition(value, number) for number, value in enumerate(values)]

    @encode_errors
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SourcePartition)
        dead_letters = self.task.spool.begin(None, partition.number)
        yield from self.task.read(partition.value, dead_letters, spark_task.is_retry())
        dead_letters.close()


def source_offset(offset: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the offset of the source in an offset of Spark, without the keys of this module."""
    return {key: value for key, value in offset.items() if key not in _KEYS}


def read_all(task: SourceTask) -> Iterator[pa.RecordBatch]:
    """Reads a source once from this process, without Spark, and closes the source.

    Decodes in forks, because this process survives no crash of a decoder.
    """
    source = task.source
    try:
        start = source.initial_offset()
        dead_letters = task.spool.begin(0, "static")
        for partition in source.partitions(start, source.latest_offset(start)):
            yield from task.read(partition, dead_letters, isolated=True)
        dead_letters.close()
    finally:
        source.close()
