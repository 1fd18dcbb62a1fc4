"""One batch of a query: from the trunk's rows to all sinks below it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from penstock.engine.bisect import Bisection, data_error
from penstock.engine.build import Builder
from penstock.engine.columns import to_arrow
from penstock.engine.pace import Portion
from penstock.engine.sink import RECEIPT_DDL, SinkTask, Write
from penstock.engine.spool import Spool
from penstock.plan.model import Node, Query
from penstock.plan.queries import shared
from penstock.sdk import BatchId, Sink
from penstock.spec.models import SinkSpec


class Events(Protocol):
    """What a run wants to know of batches. Called on the driver, by the query's own thread."""

    def begin(self, query: Query, number: int) -> None:
        """A batch begins; earlier ones are in the commit log."""

    def wrote(self, query: Query, number: int, sink: str, rows: int, bad: int) -> None:
        """A sink has the batch."""


@dataclass
class BatchRunner:
    """The function that Spark calls for each batch of a query.

    An exception of the run's own is kept in `error`, because its type does not survive the way
    through the JVM. `lock` is held while a batch is under way, `written` is the last one that all
    sinks have.
    """

    builder: Builder
    query: Query
    checkpoint: Path
    events: Events
    error: BaseException | None = None
    written: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    _tasks: dict[str, SinkTask] = field(default_factory=dict)

    def __call__(self, trunk: DataFrame, number: int) -> None:
        try:
            with self.lock:
                self.events.begin(self.query, number)
                self._run(trunk, number)
                self.written = number
        except BaseException as error:
            self.error = error
            raise

    def _run(self, trunk: DataFrame, number: int) -> None:
        batch = BatchId(self._query_id(), number)
        with self._frames(trunk) as frames:
            for name in self.query.sinks:
                self._write(self.builder.plan.nodes[name], frames, batch)

    @contextmanager
    def _frames(self, trunk: DataFrame) -> Iterator[dict[str, DataFrame]]:
        """All frames of the batch; one that has several readers is computed once."""
        frames = self.builder.batch(self.query, trunk)
        kept = [frames[name] for name in shared(self.query, self.builder.plan.nodes)]
        for frame in kept:
            frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        try:
            yield frames
        finally:
            for frame in kept:
                frame.unpersist()

    def _write(self, sink: Node, frames: Mapping[str, DataFrame], batch: BatchId) -> None:
        try:
            receipts = self._receipts(sink, frames, batch)
        except Exception as error:
            if self.builder.plan.nodes[self.query.trunk].stateful or not data_error(error):
                raise
            receipts = self._without_culprits(sink, frames[self.query.trunk], batch, error)
        sink.sink.finish(batch, receipts)
        rows = sum(int(each["rows"]) for each in receipts)
        bad = sum(int(each["bad"]) for each in receipts)
        self.events.wrote(self.query, batch.number, sink.name, rows, bad)

    def _receipts(
        self, sink: Node, frames: Mapping[str, DataFrame], batch: BatchId
    ) -> Sequence[dict[str, Any]]:
        (above,) = sink.inputs
        rows = frames[above]
        if sink.name not in self._tasks:
            sink.sink.prepare(to_arrow(rows.schema))
        return write_rows(sink.sink, self._task(sink), rows, batch)

    def _without_culprits(
        self, sink: Node, trunk: DataFrame, batch: BatchId, error: Exception
    ) -> Sequence[dict[str, Any]]:
        """The batch again without the records that SQL failed on, which become dead letters."""
        builder = replace(self.builder, way=sink.name)
        good = Bisection(builder, self.query, sink, trunk).divert(batch.number, error)
        frames = builder.batch(self.query, good)
        task = task_of(sink, builder.spool_of(sink, self.query, "sink"))
        return write_rows(sink.sink, task, frames[sink.inputs[0]], batch)

    def _task(self, sink: Node) -> SinkTask:
        if sink.name not in self._tasks:
            spool = self.builder.spool_of(sink, self.query, "sink")
            self._tasks[sink.name] = task_of(sink, spool)
        return self._tasks[sink.name]

    def _query_id(self) -> str:
        """Spark's id of the query: the same after a restart, another after `--fresh`."""
        return str(json.loads((self.checkpoint / "metadata").read_text())["id"])


def write_rows(
    sink: Sink[Any], task: SinkTask, rows: DataFrame, batch: BatchId
) -> list[dict[str, Any]]:
    """Writes rows to a sink. Returns its writers' receipts, for `Sink.finish`."""
    division = sink.division(to_arrow(rows.schema))
    if division is not None:
        writers, columns = division
        rows = rows.repartition(writers, *(rows[f"`{name}`"] for name in columns))
        task = replace(task, portion=task.portion.shared(writers))
    elif task.portion.rate is not None:
        rows = rows.coalesce(1)
    found = rows.mapInArrow(Write(task, batch), RECEIPT_DDL).collect()
    return [json.loads(row.receipt) for row in found]


def task_of(sink: Node, spool: Spool) -> SinkTask:
    """What writes to a sink, in the portions that its node asks for."""
    spec = sink.spec
    if not isinstance(spec, SinkSpec):
        return SinkTask.of(sink.sink, spool)
    rows = spec.batch.rows or sink.sink.most_rows
    return SinkTask.of(sink.sink, spool, Portion.of(rows, spec.batch.bytes, spec.rate_limit))
