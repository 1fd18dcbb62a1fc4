"""The job that writes the rows of a batch to one sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.core.errors import StateError
from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import sink_schema
from penstock.engine.catalyst.executed_plan import ExecutedPlan, PhysicalRows
from penstock.engine.catalyst.fallible_expressions import is_fallible
from penstock.engine.catalyst.reusable_plan import ReusablePlan
from penstock.engine.checkpoints.batch_record import BatchRecordFile, Partitioning
from penstock.engine.sinks.sink import SinkTask
from penstock.engine.sinks.sink_preparation import prepare
from penstock.engine.sinks.sink_rows import (
    collect_receipts,
    computed,
    is_ordered,
    make_sink_task,
    partitioning_of,
    receipts_of,
    write_rows,
    written_columns,
)
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.plan.queries import shared_nodes
from penstock.sdk import BatchId, Capability
from penstock.sdk.data_frames import DataFrameSink


class SinkJob:
    """The job of a sink. Its task and, if possible, its plan are kept for the next batches.

    `record` has the division of the rows of each batch among the writers. The caller commits the
    receipts.
    """

    def __init__(self, query: Query, sink: Node, record: BatchRecordFile) -> None:
        self.query, self.sink, self._record = query, sink, record
        self._task: SinkTask | None = None
        self._first: tuple[DataFrame, DataFrame] | None = None
        """The receipts and the root of the first batch, until the plan is made for the next."""
        self._plan: ReusablePlan | ExecutedPlan | None = None
        self._is_planned = False
        self.receipts: DataFrame | None = None
        """The receipts of the last batch, unless its rows were computed before."""
        self._partitioned: tuple[StructType, Partitioning | None] | None = None
        self._computed_first: bool | None = None

    def reuse_plan(self, root: DataFrame) -> DataFrame | PhysicalRows | None:
        """Returns the receipts of a batch by the plan of an earlier one; None without a plan.

        The frame is not computed yet (see `receipts_of`).
        """
        if self._first is not None:
            receipts, first = self._first
            plan = ReusablePlan.of(receipts, first)
            self._plan = plan and (ExecutedPlan.of(receipts, first) or plan)
            self._first = None
        return None if self._plan is None else self._plan.apply(root)

    def prepare(self, builder: Builder, frames: Mapping[str, DataFrame]) -> None:
        """Prepares the sink for the columns of its input, before the first batch."""
        if self._task is None:
            columns = sink_schema(frames[self.sink.inputs[0]].schema)
            prepare(self.sink, written_columns(columns, self.sink.removed_operation))
            self._task = self._make_task(builder)

    def write(
        self, builder: Builder, frames: Mapping[str, DataFrame], batch: BatchId, *, cached: bool
    ) -> Sequence[dict[str, Any]]:
        """Writes all rows of a batch after `prepare`. Returns the receipts.

        `cached` is whether frames of this batch alone are cached; their plan is not kept.
        """
        assert self._task is not None
        rows, self.receipts = frames[self.sink.inputs[0]], None
        if isinstance(self.sink.sink, DataFrameSink):
            return self._write_frame(builder, self.sink.sink, rows, batch)
        partitioning = self._partitioning(rows.schema, batch)
        receipts = receipts_of(self.sink.sink, self._task, rows, partitioning)
        if self._is_computed_first(builder, rows, partitioning):
            with computed(rows):
                return collect_receipts(receipts, batch)
        self.receipts, self._partitioned = receipts, (rows.schema, partitioning)
        if not cached:
            self._keep_frames(builder, receipts, frames[self.query.root], partitioning)
        return collect_receipts(receipts, batch)

    def divides_as_before(self, batch: BatchId) -> bool:
        """Returns whether the rows of a batch are divided as those of the last one.

        A repeated batch is divided as in its first attempt.
        """
        if self._partitioned is None:
            return False
        columns, partitioning = self._partitioned
        return self._partitioning(columns, batch) == partitioning

    def write_valid(
        self, builder: Builder, rows: DataFrame, batch: BatchId
    ) -> Sequence[dict[str, Any]]:
        """Writes the rows of a batch on which SQL does not fail. Returns the receipts."""
        if isinstance(self.sink.sink, DataFrameSink):
            return self._write_frame(builder, self.sink.sink, rows, batch)
        self.receipts = None
        partitioning = self._partitioning(rows.schema, batch)
        return write_rows(self.sink.sink, self._make_task(builder), rows, batch, partitioning)

    def _write_frame(
        self, builder: Builder, sink: DataFrameSink[Any], rows: DataFrame, batch: BatchId
    ) -> Sequence[dict[str, Any]]:
        """Writes a batch by Spark.

        All rows that replace others are computed before Spark deletes the others.
        """
        columns = written_columns(sink_schema(rows.schema), self.sink.removed_operation)
        is_computed = sink.mode == "replace" or self._is_computed_first(builder, rows, None)
        with computed(rows) if is_computed else nullcontext():
            sink.write_frame(rows.drop(*({*rows.columns} - {*columns.names})), batch)
        return []

    def _make_task(self, builder: Builder) -> SinkTask:
        return make_sink_task(self.sink, builder.make_spool(self.sink, self.query, "sink"))

    def _keep_frames(
        self, builder: Builder, receipts: DataFrame, root: DataFrame,
        partitioning: Partitioning | None,
    ) -> None:  # fmt: skip
        """Keeps the frames for the plan of the next batches, unless some of them are cached.

        The partitioning of a batch is recorded with its rows, so a plan with one is not kept.
        """
        shared = shared_nodes(self.query, builder.plan.nodes)
        reusable = partitioning is None and not shared and not self.query.updating
        if not self._is_planned and reusable:
            self._first, self._is_planned = (receipts, root), True

    def _is_computed_first(
        self, builder: Builder, rows: DataFrame, partitioning: Partitioning | None
    ) -> bool:
        """Returns whether all rows must be computed before the first one is written.

        Otherwise rows of one partition would be sent before SQL fails on a row of another one, and
        sent again in the next attempt. A shuffle before the sink computes all rows as well.
        """
        if self._computed_first is None:
            sink = self.sink
            shuffled = partitioning is not None or is_ordered(sink.sink)
            self._computed_first = not (
                shuffled or sink.can(Capability.EXACTLY_ONCE) or sink.sink.discards_rows
            ) and (not builder.plan.reads_sources_only(self.query) or is_fallible(rows))
        return self._computed_first

    def _partitioning(self, columns: StructType, batch: BatchId) -> Partitioning | None:
        """Returns the partitioning of a batch; for a repeated batch that of its first attempt."""
        sink = self.sink
        current = partitioning_of(sink.sink, columns, sink.removed_operation)
        partitioning = self._record.partitioning(batch, sink.name, current)
        _, names = partitioning or (0, ())
        missing = [name for name in names if name not in columns.names]
        if missing:
            raise StateError(
                f"{sink.label}: batch {batch.number} is written in part, divided by the column "
                f'"{missing[0]}", which the rows no longer have',
                code="changed-partitioning",
                where=sink.where,
                hint="Run the former pipeline until it has written the batch.",
            )
        return partitioning
