"""Plans of deduplications within a span of event time.

Spark's operator drops a row if its key is in the state, whatever the event times: keys leave the
state between batches only. Here the tasks of `engine.deduplication.task` compare the event times.
Spark's deduplication by equal values follows, which drops and counts the late rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit, pmod, spark_partition_id, struct, unix_micros
from pyspark.sql.pandas.functions import arrow_udf

from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    analyzed_plan,
    class_name,
    has_metadata,
    rewrite_operators,
    scala_items,
    streaming_operators,
)
from penstock.engine.deduplication.attempt import FOLDER
from penstock.engine.deduplication.kept_rows import EVENT_TIME
from penstock.engine.deduplication.state import KeptRows
from penstock.engine.deduplication.task import BUCKETS, FirstRows
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import HASH_2, KEY, ORDER
from penstock.engine.updating.task import BUCKET

_OPERATOR = "DeduplicateWithinWatermark"
_PATTERN = "DISTINCT_LIKE"
_ROW = "_penstock_row"
_REORDERING = frozenset({"Aggregate", "Deduplicate", "Distinct", "RepartitionByExpression"})
_MICROSECONDS = 1000


def by_event_time(frame: DataFrame) -> DataFrame:
    """Returns the table of a frame whose deduplications compare event times."""
    plans = _Plans(Catalyst(frame.sparkSession), None)
    return rewrite_operators(frame, plans.rewrite, _PATTERN)


def by_event_time_of_stream(
    frame: DataFrame, checkpoint: Path
) -> tuple[DataFrame, KeptRows | None]:
    """Returns a stream whose deduplications compare event times, and their state if there is any.

    The state is in the checkpoint.
    """
    session = frame.sparkSession
    plans = _Plans(Catalyst(session), checkpoint)
    frame = rewrite_operators(frame, plans.rewrite, _PATTERN)
    if not plans.operators:
        return frame, None
    joins = any(map(_joins_streams, streaming_operators(analyzed_plan(frame), "Join")))
    return frame, KeptRows(session, checkpoint, tuple(plans.operators), joins)


@dataclass
class _Plans:
    catalyst: Catalyst
    checkpoint: Path | None
    operators: list[str] = field(default_factory=list)

    def rewrite(self, plan: Any, _: Any) -> Any:
        """Returns a deduplication by event times, or the operator itself."""
        if class_name(plan) != _OPERATOR:
            return plan
        keys, child = scala_items(plan.keys()), plan.child()
        time = next(
            (each for each in scala_items(child.output()) if has_metadata(each, WATERMARK_DELAY)),
            None,
        )
        if time is None:
            return plan
        if any(key.exprId().equals(time.exprId()) for key in keys):
            return self._deduplicate(keys, child)
        return self._compare(plan, keys, time)

    def _deduplicate(self, keys: list[Any], rows: Any) -> Any:
        """Returns Spark's deduplication by equal values."""
        none = self.catalyst.java.scala.Option.empty()
        return self.catalyst.plans.Deduplicate(self.catalyst.sequence(keys), rows, none)

    def _compare(self, plan: Any, keys: list[Any], time: Any) -> Any:
        """Returns the rows of a deduplication whose key does not have the event time."""
        column = self.catalyst.column(time)
        if class_name(time.dataType()) == "StructType":
            column = column.getField("end")
        moment = unix_micros(column.cast("timestamp"))
        columns = [self.catalyst.column(each) for each in keys]
        key, other = hashes(columns, self.catalyst.types(keys))
        order = moment if _loses_order(plan.child()) else spark_partition_id().cast("long")
        row = struct(
            pmod(key, lit(BUCKETS)).alias(BUCKET),
            order.alias(ORDER),
            key.alias(KEY),
            other.alias(HASH_2),
            moment.alias(EVENT_TIME),
        )
        rows, attribute = self.catalyst.with_column(plan.child(), row, _ROW)
        value = self.catalyst.column(attribute)
        partitions = int(self.catalyst.session.conf.get("spark.sql.shuffle.partitions") or BUCKETS)
        frame = self.catalyst.frame(rows)
        frame = frame.repartition(min(partitions, BUCKETS), value.getField(BUCKET))
        kept = analyzed_plan(frame.where(self._is_kept(_span(time))(value)))
        kept = self.catalyst.project(kept, scala_items(plan.output()))
        return self._deduplicate([*keys, time], kept)

    def _is_kept(self, within: int) -> Any:
        """Returns the function whether rows are kept. Streams have an operator with state."""
        directory = None
        if self.checkpoint is not None:
            self.operators.append(f"once-{len(self.operators) + 1}")
            directory = str(self.checkpoint / FOLDER)
        operator = self.operators[-1] if directory is not None else ""
        make_udf: Any = arrow_udf
        is_kept = make_udf(_condition_of(FirstRows(within, directory, operator)), "boolean")
        return is_kept.asNondeterministic()


def _loses_order(plan: Any) -> bool:
    """Returns whether the rows of a plan are not in the order of their source.

    An aggregation has rows in the order of event time, from batch to batch.
    """
    kind = class_name(plan)
    if kind in _REORDERING or (kind == "Join" and _joins_streams(plan)):
        return True
    return any(map(_loses_order, children_of(plan)))


def _joins_streams(join: Any) -> bool:
    return all(map(is_stream, children_of(join)))


def _span(time: Any) -> int:
    """Returns the delay in the metadata of an event time, in microseconds."""
    return int(time.metadata().getLong(WATERMARK_DELAY)) * _MICROSECONDS


def _condition_of(rows: FirstRows) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Returns a function with the type hints by which Spark selects its kind."""

    def is_kept(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return rows(columns)

    return is_kept
