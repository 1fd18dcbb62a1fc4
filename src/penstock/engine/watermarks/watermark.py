"""Watermarks of sources and transforms: event time, its range, and the end of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, lit, when
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from penstock.core.error_codec import encode_errors
from penstock.core.errors import OptionError, PlanError
from penstock.core.text import did_you_mean
from penstock.engine.catalyst.arrow_map import map_in_arrow
from penstock.engine.catalyst.columns import to_arrow, to_spark
from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.logical_plans import named
from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    analyzed_plan,
    class_name,
    rewrite_streams,
)
from penstock.engine.sources.sentinel import END_OF_TIME, sentinel
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.event_time import find_out_of_range, out_of_range
from penstock.engine.tasks.function import Chain, Step
from penstock.engine.tasks.late_candidates import LateCapture
from penstock.plan.node import Node
from penstock.sdk import Config, Context, Transform
from penstock.spec.node_models import Watermark
from penstock.sql.dialect.translate import translate

_BOUND = "_watermark_bound"


class EventTimeColumn(Config):
    column: str


class EventTimeCheck(Transform[EventTimeColumn]):
    """A check of computed event times. A row with a time out of range is a bad record."""

    deterministic = True

    def output(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        times = batch.column(self.config.column)
        bad = find_out_of_range(times)
        if bad:
            raise out_of_range(self.config.column, times[bad[0]])
        yield batch


@dataclass(frozen=True)
class SentinelRows:
    """A function for `mapInArrow` that replaces each row by the sentinel row of a transform."""

    rows: pa.Schema
    event_time: str

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(batch.num_rows):
                yield sentinel(self.rows, self.event_time)


def add_watermark(
    frame: DataFrame, watermark: Watermark, *, drops_sentinel: bool = False
) -> DataFrame:
    """Returns a stream with a watermark. Raises PlanError if its bound is not a TIMESTAMP.

    With `drops_sentinel` the stream is without the sentinel row, which has moved the watermark.
    """
    delay = round(watermark.delay * 1000)
    if watermark.bound is None:
        bounded = frame.withWatermark(watermark.column, f"{delay} milliseconds")
        return _drop_sentinel(bounded, watermark.column) if drops_sentinel else bounded
    bounded = frame.withColumn(_BOUND, _bound(frame, watermark.column, watermark.bound))
    event_time = col(watermark.column).alias(watermark.column, metadata={WATERMARK_DELAY: delay})
    columns = [event_time if name == watermark.column else named(name) for name in frame.columns]
    bounded = bounded.withWatermark(_BOUND, f"{delay} milliseconds")
    if drops_sentinel:
        bounded = _drop_sentinel(bounded, _BOUND)
    return bounded.select(*columns)


def keep_filters_above(frame: DataFrame) -> DataFrame:
    """Returns a stream whose watermarks advance with all rows, also with those of no result.

    Spark evaluates a filter below the watermark if it can. The rows that do not pass would then not
    advance the watermark. No filter passes another one whose value is not deterministic.
    """

    def keep(plan: Any, java: Any) -> Any:
        if class_name(plan) != "EventTimeWatermark":
            return plan
        catalyst = java.org.apache.spark.sql.catalyst
        expressions = catalyst.expressions
        partition = expressions.SparkPartitionID()
        first = expressions.Literal(0, partition.dataType())
        always = expressions.GreaterThanOrEqual(partition, first)
        return catalyst.plans.logical.Filter(always, plan)

    return rewrite_streams(frame, keep, "EVENT_TIME_WATERMARK")


def _bound(frame: DataFrame, event_time: str, expression: str) -> Column:
    """Returns the column whose maximum is the watermark: the event time of a sentinel row."""
    value = expr(translate(expression).text)
    type_ = frame.select(value).schema[0].dataType
    if not isinstance(type_, TimestampType | TimestampNTZType):
        raise PlanError(
            f"watermark.bound is {type_.simpleString().upper()}, not TIMESTAMP",
            code="wrong-type",
            hint="Write an expression of a time, as in at - INTERVAL 5 SECONDS.",
        )
    java: Any = java_names(frame.sparkSession)
    columns = java.org.apache.spark.sql.classic.ExpressionUtils
    given: Any = value
    tried = Column(
        columns.column(
            java.org.apache.spark.sql.catalyst.expressions.TryEval(columns.expression(given._jc))
        )
    )
    time = col(event_time)
    return when(time >= lit(END_OF_TIME), time).otherwise(tried)


def _drop_sentinel(frame: DataFrame, column: str) -> DataFrame:
    """Returns a stream without the sentinel row, by the column of its watermark.

    A condition on another column would be evaluated before the watermark.
    """
    time = col(column)
    return frame.where(time.isNull() | (time < lit(END_OF_TIME)))


def add_event_time(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    """Adds the column of the event time that the expression of a watermark computes."""
    assert watermark is not None and watermark.expression is not None
    return frame.withColumn(watermark.column, expr(translate(watermark.expression).text))


def watermark_id(frame: DataFrame) -> str:
    """Returns the ID of the watermark that a stream has received last."""
    plan = analyzed_plan(frame)
    while class_name(plan) != "EventTimeWatermark":
        plan = plan.child()
    return str(plan.nodeId().toString())


def check_event_times(
    frame: DataFrame, column: str, spool: Spool, run_id: str, late: LateCapture | None = None
) -> DataFrame:
    """Returns a stream without the rows whose event time is out of range: bad records.

    Counts the rows without an event time, and captures rows that may be late.
    """
    rows = to_arrow(frame.schema)
    context = Context(spool.pipeline, f"{spool.node} (event time)")
    check = EventTimeCheck(EventTimeColumn(column=column), context)
    step = Step(check, rows, spool, run_id, event_time=column, late=late)
    return map_in_arrow(frame, Chain([step]), to_spark(rows))


def sentinel_rows(sources: Sequence[DataFrame], columns: StructType, event_time: str) -> DataFrame:
    """Returns the sentinel rows of a node, given the sentinel rows of its sources."""
    replace = SentinelRows(to_arrow(columns), event_time)
    frames = [map_in_arrow(source, replace, columns) for source in sources]
    return reduce(DataFrame.unionAll, frames)


def check_event_time_column(node: Node, columns: StructType, watermark: Watermark) -> None:
    """Raises PlanError if the rows of a node have no event-time column of type TIMESTAMP."""
    computed = watermark.expression is not None
    option = ("watermark", "expression" if computed else "column")
    problem = f'{node.label} has its watermark on "{watermark.column}", which is'
    if watermark.column not in columns.names:
        hint = did_you_mean(watermark.column, columns.names)
        raise OptionError.of(
            *option, message=f"{problem} not a column", code="unknown-column", hint=hint
        )
    type_ = columns[watermark.column].dataType
    if not isinstance(type_, TimestampType | TimestampNTZType):
        declared = node.kind == "source" and not computed
        raise OptionError.of(
            *option,
            message=f"{problem} {type_.simpleString().upper()}, not TIMESTAMP",
            code="wrong-type",
            hint="Declare the column as TIMESTAMP." if declared
            else "Convert the column, as in to_timestamp(text, 'dd/MM/yyyy HH:mm:ss').",
        )  # fmt: skip
