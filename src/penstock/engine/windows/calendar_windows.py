"""Groups by windows of the calendar, as `calendar_window(at, 'month', 'Europe/Berlin')`.

They are structs of expressions over the event time. As columns with Spark's metadata of windows, a
watermark completes their groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import children_of, references_of
from penstock.engine.catalyst.spark_plan import (
    TIME_WINDOW,
    WATERMARK_DELAY,
    class_name,
    has_metadata,
    map_children,
    replace_expressions,
    rewrite_streams,
    scala_items,
    scala_sequence,
)

_NAME = "window"
_ALLOWED = frozenset({
    "AttributeReference", "Cast", "CreateNamedStruct", "FromUTCTimestamp", "Literal",
    "TimestampAddInterval", "TimestampAddYMInterval", "ToUTCTimestamp", "TruncTimestamp",
})  # fmt: skip
_MOMENTS = [
    int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1_000_000)
    for text in ("2024-02-29T23:59:59.999999", "2025-03-30T01:00:00", "2025-10-26T00:30:00")
]
"""Times in microseconds, at which windows are compared: a leap day, and changes of the clock."""


def by_calendar_windows(frame: DataFrame) -> DataFrame:
    """Returns a stream whose groups by windows of the calendar are completed by the watermark."""
    return rewrite_streams(frame, _CalendarWindows().rewrite, "AGGREGATE")


@dataclass
class _CalendarWindows:
    """The rewriting of one plan. `columns` are those that have become windows, by their IDs."""

    columns: dict[int, Any] = field(default_factory=dict)

    def rewrite(self, plan: Any, java: Any) -> Any:
        """Returns an operator whose columns are windows where those of its inputs are."""
        plan = self._refresh(plan, java) if self.columns else plan
        if class_name(plan) != "Aggregate":
            return plan
        for group in scala_items(plan.groupingExpressions()):
            time = _event_time(group)
            if time is not None and _is_calendar(group, java):
                plan = _by_column(plan, group, time, java)
                self._add(plan.aggregateExpressions())
                return plan
        return plan

    def _refresh(self, plan: Any, java: Any) -> Any:
        """Returns an operator whose expressions have the metadata of the columns of its inputs."""
        plans, kind = java.org.apache.spark.sql.catalyst.plans.logical, class_name(plan)
        if kind == "Project":
            plan = plans.Project(self._refreshed(plan.projectList(), java), plan.child())
            self._add(plan.projectList())
        elif kind == "Aggregate":
            groups = self._refreshed(plan.groupingExpressions(), java)
            items = self._refreshed(plan.aggregateExpressions(), java)
            plan = plans.Aggregate(groups, items, plan.child(), plan.hint())
            self._add(plan.aggregateExpressions())
        elif kind == "Join" and plan.condition().isDefined():
            condition = java.scala.Option.apply(self._column(plan.condition().get(), java))
            plan = plans.Join(plan.left(), plan.right(), plan.joinType(), condition, plan.hint())
        return plan

    def _refreshed(self, items: Any, java: Any) -> Any:
        return scala_sequence(java, [self._column(item, java) for item in scala_items(items)])

    def _column(self, expression: Any, java: Any) -> Any:
        """Returns an expression over the columns that are windows."""
        if class_name(expression) == "AttributeReference":
            return self.columns.get(int(expression.exprId().id()), expression)
        return map_children(expression, lambda child: self._column(child, java))

    def _add(self, items: Any) -> None:
        """Adds the names of columns that are windows."""
        for item in scala_items(items):
            if class_name(item) == "Alias" and has_metadata(item, TIME_WINDOW):
                self.columns[int(item.exprId().id())] = item.toAttribute()


def is_calendar_window(definition: Any) -> bool:
    """Returns whether the definition of a window has the form of a window of the calendar."""
    return any(class_name(part) == "TruncTimestamp" for part in _parts(definition))


def _event_time(group: Any) -> Any | None:
    """Returns the only column of a struct of bounds, if it is an event time."""
    if class_name(group) != "CreateNamedStruct" or not is_calendar_window(group):
        return None
    columns = references_of(group)
    if len(columns) != 1 or not has_metadata(columns[0], WATERMARK_DELAY):
        return None
    return columns[0] if all(class_name(part) in _ALLOWED for part in _parts(group)) else None


def _is_calendar(struct: Any, java: Any) -> bool:
    """Returns whether a struct is a window: each time is between its bounds, the end excluded."""
    if list(struct.dataType().fieldNames()) != ["start", "end"]:
        return False
    for moment in _MOMENTS:
        start, end = _bounds(struct, moment, java)
        if not start <= moment < end or _bounds(struct, end, java)[0] != end:
            return False
    return True


def _bounds(struct: Any, moment: int, java: Any) -> tuple[int, int]:
    row = _at(struct, moment, java).eval(None)
    return int(row.getLong(0)), int(row.getLong(1))


def _at(expression: Any, moment: int, java: Any) -> Any:
    """Returns an expression with a time in place of its column."""
    if class_name(expression) == "AttributeReference":
        literal = java.org.apache.spark.sql.catalyst.expressions.Literal
        return literal(moment, expression.dataType())
    return map_children(expression, lambda child: _at(child, moment, java))


def _by_column(plan: Any, struct: Any, time: Any, java: Any) -> Any:
    """Returns an aggregation by a column of windows in place of their expression."""
    expressions = java.org.apache.spark.sql.catalyst.expressions
    plans = java.org.apache.spark.sql.catalyst.plans.logical
    builder = java.org.apache.spark.sql.types.MetadataBuilder()
    delay = time.metadata().getLong(WATERMARK_DELAY)
    metadata = builder.putBoolean(TIME_WINDOW, True).putLong(WATERMARK_DELAY, delay).build()
    window = expressions.Alias(
        struct,
        _NAME,
        expressions.NamedExpression.newExprId(),
        scala_sequence(java, []),
        java.scala.Option.apply(metadata),
        scala_sequence(java, []),
    )
    timed = plans.Filter(expressions.IsNotNull(time), plan.child())
    rows = plans.Project(scala_sequence(java, [*scala_items(plan.child().output()), window]), timed)
    column = scala_items(rows.output())[-1]
    replaced = partial(replace_expressions, replaced=[(struct, column)], within_aggregates=False)
    groups, items = (
        scala_sequence(java, list(map(replaced, scala_items(part))))
        for part in (plan.groupingExpressions(), plan.aggregateExpressions())
    )
    return plans.Aggregate(groups, items, rows, plan.hint())


def _parts(expression: Any) -> Iterator[Any]:
    yield expression
    for child in children_of(expression):
        yield from _parts(child)
