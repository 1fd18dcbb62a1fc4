"""Sources as PySpark data sources: reading, decoding, and bad records to the spool."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from penstock.core.errors import Bug
from penstock.engine import task as spark_task
from penstock.engine.sentinel import sentinel
from penstock.engine.spool import Letters, Spool
from penstock.plan.hint import EVERYTHING, Hint
from penstock.sdk import Capability, Read, ReplayableSource
from penstock.sdk.kit.columns import conform
from penstock.sdk.kit.conjuncts import meeting

CLOSED = "closed"
ENOUGH_ROWS = 8_000
ENOUGH_BYTES = 4 << 20
"""What a batch has before it is handed to Spark, if more comes."""
LOOK = 0.15
"""How often an idle source is asked for news, in seconds."""


@dataclass(frozen=True)
class SourceTask:
    """All that reading a source takes, in the process that reads.

    `rows` are the columns that Spark expects: the source's columns, then the metadata columns
    under the names that the user gave. With `closing` the source has nothing more to give but one
    row at the end of time in the column `event_time`. With `commits` Spark tells the source what
    has been written, which it does when the next batch comes; a pipeline does so itself
    (`runtime.acknowledge`). Rows and columns that `hint` does not ask for may be left out,
    and with `spares` all such columns are empty: no dead letter will show whole rows. An idle
    source is asked for news for up to `patience` seconds before Spark hears that there are none,
    since Spark's own asking costs ten times as much.
    """

    source: ReplayableSource[Any]
    rows: pa.Schema
    metadata: Mapping[str, str]
    spool: Spool
    event_time: str | None = None
    closing: bool = False
    commits: bool = False
    hint: Hint = EVERYTHING
    spares: bool = False
    patience: float = 0.0

    def pack(self) -> str:
        """The task as text, for the options of a PySpark reader."""
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def unpack(text: str) -> SourceTask:
        """The task of `pack`."""
        task = pickle.loads(base64.b64decode(text))
        if not isinstance(task, SourceTask):
            raise Bug("the option of a data source holds something else")
        return task

    def read(self, partition: Any, letters: Letters) -> Iterator[pa.RecordBatch]:
        """The rows of one of the source's partitions; its bad records go to `letters`."""
        return gathered(self._read(partition, letters))

    def _read(self, partition: Any, letters: Letters) -> Iterator[pa.RecordBatch]:
        read = self._wanted()
        decodes = Capability.BYTES in self.source.capabilities
        for batch in self.source.read(partition, read):
            rows = self._decode(batch, letters) if decodes else batch
            self._reject(read, letters)
            if rows.num_rows:
                rows = self._needed(self._named(rows), read)
            if rows.num_rows:
                yield self._spared(rows) if self.spares else rows
        self._reject(read, letters)
        letters.skipped += read.skipped

    def again(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        """A bad record once more, as rows; its metadata is not known. Raises RecordError."""
        rows = self.source.decode(payload, origin, position)
        for field in list(self.rows)[rows.num_columns :]:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return self._named(rows)

    def sentinel(self) -> pa.RecordBatch:
        """One row without content at the end of time."""
        return sentinel(self.rows, self.event_time)

    def _wanted(self) -> Read:
        """The hint in the source's words. Rows that move the watermark are not left to it."""
        own = self.rows.names[: len(self.rows) - len(self.metadata)]
        columns = None
        if self.hint.columns is not None:
            columns = frozenset(name for name in own if name in self._columns)
        conjuncts = () if self.event_time is not None else self.hint.conjuncts
        told = tuple(each for each in conjuncts if each.column in own)
        return Read(columns, told, tuple(self.metadata.values()))

    @property
    def _columns(self) -> frozenset[str]:
        """Those that are used, and those that cannot be null."""
        used = self.hint.columns
        fields = [f for f in self.rows if used is None or f.name in used or not f.nullable]
        return frozenset(field.name for field in fields)

    def _spared(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows without the content of columns that nobody uses, which Spark would copy."""
        count, used = rows.num_rows, self._columns
        columns = [
            column if field.name in used else pa.nulls(count, field.type)
            for field, column in zip(self.rows, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.rows)

    def _needed(self, rows: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        """The rows that meet the conjuncts, and the one with the latest event time."""
        if not self.hint.conjuncts:
            return rows
        met = meeting(rows, self.hint.conjuncts)
        if met.true_count == rows.num_rows:
            return rows
        if self.event_time is not None:
            times = rows.column(self.event_time)
            latest = pc.index(times, pc.max(times)).as_py()
            met = pa.array(np.asarray(met.fill_null(False)) | (np.arange(len(met)) == latest))
        needed = rows.filter(met)
        read.skipped += rows.num_rows - needed.num_rows
        return needed

    def _decode(self, batch: pa.RecordBatch, letters: Letters) -> pa.RecordBatch:
        assert self.source.format is not None
        assert self.source.columns is not None
        decoded = self.source.format.rows(batch.column("payload"), self.source.columns)
        for index, text, part, error in decoded.bad:
            origin, position = batch.column("origin")[index], batch.column("position")[index]
            letters.add(text, error, origin.as_py(), position.as_py(), part)
        rows = decoded.rows
        for name in self.metadata.values():
            column = batch.column(name)
            if decoded.index is not None:
                column = column.take(decoded.index)
            rows = rows.append_column(f"metadata:{name}", column)
        return rows

    def _named(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return conform(rows.rename_columns(self.rows.names), self.rows)

    def _reject(self, read: Read, letters: Letters) -> None:
        for bad in read.bad:
            letters.add(bad.payload, bad.error, bad.origin, bad.position, bad.part)
        read.bad.clear()


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: a small one costs Spark as much as many rows do."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= ENOUGH_ROWS or size >= ENOUGH_BYTES:
            yield held[0] if len(held) == 1 else pa.concat_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)


class Slice(InputPartition):
    """One partition of a source, in Spark's clothes."""

    def __init__(self, value: Any, number: int) -> None:
        self.value = value
        self.number = number


class Sentinel(InputPartition):
    """The partition of the row at the end of time."""

    def __init__(self) -> None:
        pass


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A replayable source as Spark's stream reader."""

    def __init__(self, task: SourceTask) -> None:
        self.task = task
        self.source = task.source
        self._snapshot: Mapping[str, Any] | None = None
        self._until_snapshot = False
        self._seen: Mapping[str, Any] | None = None
        self._idle = False

    def prepareForTriggerAvailableNow(self) -> None:
        self._until_snapshot = True

    def initialOffset(self) -> dict[str, Any]:
        return dict(self.source.initial())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if self.task.closing:
            return {**start, CLOSED: True}
        at = without_mark(start)
        if self._until_snapshot and self._snapshot is not None:
            end = self._snapshot
        else:
            end = self._seen = self._latest(at)
            if self._until_snapshot:
                self._snapshot = end
        return dict(self.source.advance(at, end))

    def _latest(self, at: dict[str, Any]) -> Mapping[str, Any]:
        """What is there now. Waits for news only if there were none the last time either: after
        a batch Spark may have a window to close.
        """
        end = self.source.latest(at)
        until = time.monotonic() + self.task.patience
        while self._idle and end == at and time.monotonic() < until:
            time.sleep(LOOK)
            end = self.source.latest(at)
        self._idle = end == at
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return dict(self._seen) if self._seen is not None else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        values = self.source.partitions(without_mark(start), without_mark(end))
        slices: list[InputPartition] = [Slice(value, i) for i, value in enumerate(values)]
        if end.get(CLOSED) and not start.get(CLOSED):
            slices.append(Sentinel())
        return slices

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Sentinel):
            yield self.task.sentinel()
            return
        assert isinstance(partition, Slice)
        letters = self.task.spool.begin(spark_task.batch_number(), partition.number)
        yield from self.task.read(partition.value, letters)
        letters.close()

    def commit(self, end: dict[str, Any]) -> None:
        if self.task.commits:
            self.source.commit(without_mark(end))

    def stop(self) -> None:
        self.source.close()


class BatchReader(DataSourceReader):
    """A source read once from its beginning to what is there now."""

    def __init__(self, task: SourceTask) -> None:
        self.task = task

    def partitions(self) -> list[InputPartition]:
        source = self.task.source
        start = source.initial()
        values = source.partitions(start, source.latest(start))
        return [Slice(value, number) for number, value in enumerate(values)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        letters = self.task.spool.begin(None, partition.number)
        yield from self.task.read(partition.value, letters)
        letters.close()


def without_mark(offset: Mapping[str, Any]) -> dict[str, Any]:
    """A position as its source knows it."""
    return {key: value for key, value in offset.items() if key != CLOSED}


def read_all(task: SourceTask) -> Iterator[pa.RecordBatch]:
    """A source read once in this process, without Spark. Closes it."""
    source = task.source
    try:
        start = source.initial()
        letters = task.spool.begin(0, "static")
        for partition in source.partitions(start, source.latest(start)):
            yield from task.read(partition, letters)
        letters.close()
    finally:
        source.close()
