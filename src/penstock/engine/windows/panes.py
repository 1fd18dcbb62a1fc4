"""Sliding windows by panes: rows are aggregated by pane before Spark divides them among windows.

Spark copies each row into its windows, `width / slide` of them, and aggregates the copies. All rows
of a pane, an interval of the greatest common divisor of width and slide, belong to the same
windows. An aggregation without state, in the tasks that compute the rows, therefore leaves one row
to copy for each pane and key. The windows, their state and their late rows are the same.

Other queries remain as they are: other aggregates, keys of nested types, windows with a start time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import lit, pmod, timestamp_micros, unix_micros
from pyspark.sql.types import LongType, StructField, StructType

from penstock.engine.catalyst.arrow_map import map_in_arrow
from penstock.engine.catalyst.columns import to_arrow
from penstock.engine.catalyst.java_trees import children_of, is_deterministic, references_of
from penstock.engine.catalyst.spark_plan import (
    TIME_WINDOW,
    WATERMARK_DELAY,
    analyzed_plan,
    class_name,
    frame_of,
    has_metadata,
    rewrite_streams,
    scala_items,
    scala_sequence,
)
from penstock.engine.windows.pane_aggregates import Aggregates, Unsupported
from penstock.engine.windows.pane_rows import PaneRows

_PANE = "_pane"
_MOMENT = 1_000_000_000_000_000
_FEWEST_WINDOWS = 4
"""The number of windows of a row from which panes take less time than copies."""


def by_panes(frame: DataFrame) -> DataFrame:
    """Returns a stream whose sliding windows are computed by panes where this is exact."""
    session = frame.sparkSession
    return rewrite_streams(
        frame, lambda plan, java: _Panes(session, java).rewrite(plan), "AGGREGATE"
    )


@dataclass(frozen=True)
class _Window:
    """A sliding window: its column, the column of its times, and its lengths in microseconds."""

    column: Any
    time: Any
    width: int
    slide: int


@dataclass(frozen=True)
class _Panes:
    session: SparkSession
    java: Any

    def rewrite(self, plan: Any) -> Any:
        """Returns an aggregation with panes, or the operator itself."""
        if class_name(plan) != "Aggregate":
            return plan
        try:
            return self._aggregate(plan)
        except Unsupported:
            return plan

    def _aggregate(self, plan: Any) -> Any:
        """Returns an aggregation by panes. Raises Unsupported."""
        rows = plan.child()
        expand = rows.child() if class_name(rows) == "Filter" else rows
        if class_name(expand) != "Expand":
            raise Unsupported("no sliding window")
        window = self._window(expand)
        aggregates = Aggregates(self.session)
        groups = []
        for group in scala_items(plan.groupingExpressions()):
            if group.semanticEquals(window.column):
                groups.append((group, group))
            elif not is_deterministic(group) or _reads(group, window.column) or _has_delay(group):
                raise Unsupported("a group by a part of the window, or by chance")
            else:
                groups.append((group, aggregates.add_key(group)))
        if not any(group is key for group, key in groups):
            raise Unsupported("no group by the window")
        items = [
            self._item(item, groups, aggregates)
            for item in scala_items(plan.aggregateExpressions())
        ]
        panes = self._divide(expand, window, aggregates)
        if class_name(rows) == "Filter":
            panes = self._plans.Filter(rows.condition(), panes)
        keys = scala_sequence(self.java, [key for _, key in groups])
        return self._plans.Aggregate(keys, scala_sequence(self.java, items), panes, plan.hint())

    def _window(self, expand: Any) -> _Window:
        """Returns the window of the copies of `expand`. Raises Unsupported."""
        column = scala_items(expand.output())[0]
        copies = [each.apply(0) for each in scala_items(expand.projections())]
        times = references_of(copies[0])
        if not has_metadata(column, TIME_WINDOW) or len(copies) < _FEWEST_WINDOWS:
            raise Unsupported("no window, or one of few copies")
        if len(times) != 1 or times[0].dataType().simpleString() != "timestamp":
            raise Unsupported("a window of another window, or of times without a zone")
        literal = self._expressions.Literal(_MOMENT, times[0].dataType())
        starts = []
        for copy in copies[:2]:
            bounds = self._substitute(copy, times[0], literal).eval(None)
            starts.append(bounds.getLong(0))
            width = bounds.getLong(1) - bounds.getLong(0)
        slide = starts[0] - starts[1]
        if slide <= 0 or starts[0] % slide or len(copies) != -(-width // slide):
            raise Unsupported("a window with a start time")
        return _Window(column, times[0], width, slide)

    def _substitute(self, expression: Any, time: Any, literal: Any) -> Any:
        """Returns an expression of a window with a literal as its time. Raises Unsupported."""
        children = children_of(expression)
        if any(class_name(child) == "AttributeReference" for child in children):
            if class_name(expression) != "PreciseTimestampConversion":
                raise Unsupported("a window of a computed time")
            return expression.withNewChildren(scala_sequence(self.java, [literal]))
        if not children:
            return expression
        replaced = [self._substitute(child, time, literal) for child in children]
        return expression.withNewChildren(scala_sequence(self.java, replaced))

    def _item(self, item: Any, groups: list[tuple[Any, Any]], aggregates: Aggregates) -> Any:
        """Returns a column of an aggregation. Raises Unsupported."""
        value = self._value(item, groups, aggregates)
        if class_name(value) == "UnresolvedAttribute":
            return self._named(value, item)
        return value

    def _value(self, value: Any, groups: list[tuple[Any, Any]], aggregates: Aggregates) -> Any:
        for group, key in groups:
            if value.semanticEquals(group):
                return key
        if class_name(value) == "AggregateExpression":
            return aggregates.merge(value)
        children = children_of(value)
        if not children:
            if value.references().nonEmpty():
                raise Unsupported("a column that is no group")
            return value
        replaced = [self._value(child, groups, aggregates) for child in children]
        return value.withNewChildren(scala_sequence(self.java, replaced))

    def _divide(self, expand: Any, window: _Window, aggregates: Aggregates) -> Any:
        """Returns the copies of panes in place of the copies of rows."""
        panes = self._compute(expand.child(), window, aggregates)
        first, *others = scala_items(analyzed_plan(panes).output())
        time = self._named(first, window.time, self.java.scala.Option.apply(window.time.metadata()))
        project = self._plans.Project(
            scala_sequence(self.java, [time, *others]), analyzed_plan(panes)
        )
        columns = scala_items(project.output())
        copies = [
            scala_sequence(self.java, [copy.apply(0), *columns])
            for copy in scala_items(expand.projections())
        ]
        output = scala_sequence(self.java, [window.column, *columns])
        return self._plans.Expand(scala_sequence(self.java, copies), output, project)

    def _compute(self, rows: Any, window: _Window, aggregates: Aggregates) -> DataFrame:
        """Returns the partial results of the panes of rows. The first column is the pane."""
        time = self._column(window.time)
        micros = unix_micros(time)
        pane = timestamp_micros(micros - pmod(micros, lit(gcd(window.width, window.slide))))
        keys = [column.alias(name) for name, column in aggregates.keys.items()]
        values = [column.alias(name) for name, (column, _) in aggregates.values.items()]
        timed = frame_of(rows, self.session).where(time.isNotNull())
        frame = timed.select(pane.alias(_PANE), *keys, *values)
        fields = [StructField(field.name, field.dataType) for field in frame.schema]
        kinds = [kind for _, kind in aggregates.values.values()]
        for index, kind in enumerate(kinds, len(keys) + 1):
            if kind == "count":
                fields[index] = StructField(fields[index].name, LongType())
        columns = StructType(fields)
        function = PaneRows(to_arrow(columns), [_PANE, *aggregates.keys], kinds)
        return map_in_arrow(frame, function, columns)

    def _named(self, value: Any, column: Any, metadata: Any | None = None) -> Any:
        """Returns a value under the name and the ID of a column."""
        none, empty = self.java.scala.Option.empty(), scala_sequence(self.java, [])
        return self._expressions.Alias(
            value, column.name(), column.exprId(), empty, metadata or none, empty
        )

    def _column(self, expression: Any) -> Column:
        return Column(self.java.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    @property
    def _expressions(self) -> Any:
        return self.java.org.apache.spark.sql.catalyst.expressions

    @property
    def _plans(self) -> Any:
        return self.java.org.apache.spark.sql.catalyst.plans.logical


def _reads(expression: Any, column: Any) -> bool:
    return bool(expression.references().contains(column))


def _has_delay(expression: Any) -> bool:
    """Returns whether an expression is an event time, by which Spark drops late rows."""
    name = class_name(expression)
    return name == "AttributeReference" and has_metadata(expression, WATERMARK_DELAY)
