"""Rows of one batch for one sink: their division among writers, and their writing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import (
    coalesce,
    lag,
    lit,
    monotonically_increasing_id,
    row_number,
    when,
)
from pyspark.sql.types import BooleanType, StructField, StructType
from pyspark.sql.window import WindowSpec

from penstock.core.names import quote_name
from penstock.engine.catalyst.arrow_map import map_in_arrow
from penstock.engine.catalyst.columns import has_variant, sink_schema
from penstock.engine.catalyst.executed_plan import PhysicalRows, compute
from penstock.engine.catalyst.variants import variants_to_json
from penstock.engine.checkpoints.batch_record import Partitioning
from penstock.engine.sinks.sink import RECEIPT_DDL, PartitionWriter, SinkTask
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.write_limits import WriteLimits
from penstock.plan.node import Node
from penstock.sdk import BatchId, Operation, Sink
from penstock.spec.node_models import SinkSpec

RANK = "_penstock_rank"
"""The column that ranks the rows of a key, the newest first."""
ORDER = "_penstock_order"
"""The column that keeps the source order of a batch through a shuffle."""
LAST = "_penstock_last"
"""The column of whether a row is the last one of its partition."""
_LAST_FIELD = StructField(LAST, BooleanType())
_PLACE = (1 << 33) - 1
"""The bits of `ORDER` with the place of a row in its partition."""


@contextmanager
def computed(rows: DataFrame) -> Iterator[None]:
    """Computes all rows and caches them."""
    cached = rows.is_cached
    if not cached:
        rows.persist(StorageLevel.MEMORY_AND_DISK_DESER)
    try:
        compute(rows)
        yield
    finally:
        if not cached:
            rows.unpersist()


def is_upserted(sink: Sink[Any]) -> bool:
    """Returns whether the rows of a sink replace rows with the same primary key."""
    return sink.mode == "upsert" and bool(sink.primary_key)


def is_ordered(sink: Sink[Any]) -> bool:
    """Returns whether the rows of a key reach one writer of a sink, in source order."""
    return is_upserted(sink) or sink.overwriting_columns is not None


def partitioning_of(
    sink: Sink[Any], columns: StructType, operation: str | None
) -> Partitioning | None:
    """Returns the number of writers of a sink and the columns that choose the writer of a row."""
    return sink.partitioning(written_columns(sink_schema(columns), operation))


def write_rows(
    sink: Sink[Any],
    task: SinkTask,
    rows: DataFrame,
    batch: BatchId,
    partitioning: Partitioning | None,
) -> list[dict[str, Any]]:
    """Writes rows to a sink. Returns the receipts of its writers, for `Sink.commit`."""
    return collect_receipts(receipts_of(sink, task, rows, partitioning), batch)


def collect_receipts(receipts: DataFrame | PhysicalRows, batch: BatchId) -> list[dict[str, Any]]:
    """Writes the rows of a batch by computing a frame of `receipts_of`. Returns the receipts."""
    spark_task.set_batch(receipts.sparkSession.sparkContext, batch)
    texts = PhysicalRows.of(receipts) if isinstance(receipts, DataFrame) else receipts
    return [json.loads(row.receipt) for row in texts.collect()]


def receipts_of(
    sink: Sink[Any], task: SinkTask, rows: DataFrame, partitioning: Partitioning | None
) -> DataFrame:
    """Returns a frame whose computation writes rows to a sink, and returns receipts.

    With mode `upsert` each key is written once, by one writer: the last row in source order. Rows
    that overwrite each other in another mode, and those of a sink that writes each row, are written
    by one writer in source order. VARIANT is written as JSON text.
    """
    columns = rows.schema
    rows = variants_to_json(rows)
    ordered = is_ordered(sink)
    if is_upserted(sink):
        select = all_rows if sink.writes_each_row else last_rows
        rows = select(rows, sink.primary_key, task.operation)
    elif sink.overwriting_columns is not None:
        rows = divided_rows(rows, sink.overwriting_columns)
    elif task.operation is not None and partitioning is not None:
        # The two rows of an update are adjacent, also after the shuffle.
        rows, ordered = rows.withColumn(ORDER, monotonically_increasing_id()), True
    if partitioning is not None:
        writers, names = partitioning
        rows = rows.repartition(writers, *(_column(rows, name) for name in names))
        task = replace(task, limits=task.limits.divide_among(writers))
    elif task.limits.rate is not None:
        rows = rows.coalesce(1)
    if ordered:
        rows = rows.sortWithinPartitions(ORDER).drop(ORDER)
    writer = PartitionWriter(task, columns if has_variant(columns) else None)
    return map_in_arrow(rows, writer, RECEIPT_DDL)


def last_rows(rows: DataFrame, key: Sequence[str], operation: str | None) -> DataFrame:
    """Returns the last row of each key, partitioned by the key, with the column `ORDER`.

    A key whose last row is the row before an update is deleted: the update changed the key, or a
    filter dropped the row after the update. All rows with an unknown operation, or with null in the
    key, are kept: each can become a dead letter.
    """
    ranked, replaceable = _ranked_rows(rows, key, operation)
    last = ranked.where((ranked[RANK] == 1) | ~replaceable).drop(RANK)
    return last if operation is None else _with_deletes(last, operation)


def all_rows(rows: DataFrame, key: Sequence[str], operation: str | None) -> DataFrame:
    """Returns the rows of each key, partitioned by the key, with the column `ORDER`.

    Of an update that did not change the key, only the row after it is left: the next row of the
    batch has the key, or after the last row of a partition the first one of a later partition.
    Other rows before an update delete their key, as in `last_rows`: another row may take over the
    key by an update of its own.
    """
    if operation is None or operation not in rows.columns:
        return divided_rows(rows, key)
    marked = map_in_arrow(rows, mark_last, StructType([*rows.schema, _LAST_FIELD]))
    ordered, replaceable, newest_first = _rows_of_keys(marked, key, operation)
    value, order = _column(ordered, operation), ordered[ORDER]
    is_before = value == lit(Operation.UPDATE_BEFORE.value)
    is_updated = lag(value).over(newest_first).eqNullSafe(lit(Operation.UPDATE.value))
    after = lag(order).over(newest_first)
    is_next = (after == order + 1) | (ordered[LAST] & (after.bitwiseAND(_PLACE) == 0))
    followed = ordered.withColumn(RANK, replaceable & is_before & is_updated & is_next)
    return _with_deletes(followed.where(~followed[RANK]).drop(RANK, LAST), operation)


def mark_last(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a partition with the column `LAST`."""
    rows = (batch for batch in batches if batch.num_rows)
    previous = next(rows, None)
    while previous is not None:
        following = next(rows, None)
        marks = [False] * (previous.num_rows - 1) + [following is None]
        yield previous.append_column(LAST, pa.array(marks))
        previous = following


def _ranked_rows(
    rows: DataFrame, key: Sequence[str], operation: str | None
) -> tuple[DataFrame, Column]:
    """Returns the rows with the columns `ORDER` and `RANK`, and the condition of ranked rows."""
    ordered, replaceable, newest_first = _rows_of_keys(rows, key, operation)
    return ordered.withColumn(RANK, row_number().over(newest_first)), replaceable


def _rows_of_keys(
    rows: DataFrame, key: Sequence[str], operation: str | None
) -> tuple[DataFrame, Column, WindowSpec]:
    """Returns the rows with the column `ORDER`, the condition of those with a key and an operation,
    and these rows of a key, the newest first.
    """
    columns = [_column(rows, name) for name in key]
    replaceable = reduce(and_, (column.isNotNull() for column in columns))
    if operation is not None and operation in rows.columns:
        value = _column(rows, operation)
        known = coalesce(value.isin([member.value for member in Operation]), lit(False))
        replaceable = replaceable & known
    ordered = divided_rows(rows, key)
    window = Window.partitionBy(*columns, replaceable).orderBy(ordered[ORDER].desc())
    return ordered, replaceable, window


def _with_deletes(rows: DataFrame, operation: str) -> DataFrame:
    """Returns the rows with deletes in place of rows before an update."""
    if operation not in rows.columns:
        return rows
    value = _column(rows, operation)
    deleted = value == lit(Operation.UPDATE_BEFORE.value)
    return rows.withColumn(operation, when(deleted, Operation.DELETE.value).otherwise(value))


def divided_rows(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Returns the rows partitioned by a key, with the column `ORDER`. An empty key is one key."""
    ordered = rows.withColumn(ORDER, monotonically_increasing_id())
    if not key:
        return ordered.coalesce(1)
    writers = rows.sparkSession.sparkContext.defaultParallelism
    return ordered.repartition(writers, *(_column(rows, name) for name in key))


def _column(rows: DataFrame, name: str) -> Column:
    return rows[quote_name(name)]


def written_columns(columns: pa.Schema, operation: str | None) -> pa.Schema:
    """Returns the columns that reach a sink: without the operation column."""
    return pa.schema([field for field in columns if field.name not in (ORDER, operation)])


def make_sink_task(sink: Node, spool: Spool) -> SinkTask:
    """Returns the task of a sink with the write limits of its node."""
    spec = sink.spec
    if not isinstance(spec, SinkSpec):
        return SinkTask.of(sink.sink, spool)
    rows = spec.batch.max_records or sink.sink.max_rows_per_write
    limits = WriteLimits.create(rows, spec.batch.max_size, spec.rate_limit)
    return SinkTask.of(sink.sink, spool, limits, sink.operation, spec.invalid_utf8)
