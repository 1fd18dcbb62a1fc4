"""GROUP BY a window and its event time: only the window stays event time.

Spark finds complete groups by their event-time column and does not accept a second one. The window
remains one, and the event time is a column like any other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    WINDOWS,
    class_name,
    has_metadata,
    replace_expressions,
    rewrite_streams,
    scala_items,
    scala_sequence,
)


def by_windows_only(frame: DataFrame) -> DataFrame:
    """Returns a stream whose groups have a single event-time column, which has the same rows."""
    return rewrite_streams(frame, _rewrite, "AGGREGATE")


def _rewrite(plan: Any, java: Any) -> Any:
    if class_name(plan) != "Aggregate":
        return plan
    times = [
        each for each in scala_items(plan.groupingExpressions()) if _has(each, WATERMARK_DELAY)
    ]
    others = [time for time in times if not _has(time, *WINDOWS)]
    if not others or len(others) == len(times):
        return plan
    return _without_event_times(plan, others, java)


def _without_event_times(plan: Any, times: list[Any], java: Any) -> Any:
    """Returns an aggregation that groups by copies of event-time columns."""
    expressions = java.org.apache.spark.sql.catalyst.expressions
    plans = java.org.apache.spark.sql.catalyst.plans.logical
    none, empty = java.scala.Option.empty(), scala_sequence(java, [])
    no_metadata = java.scala.Option.apply(java.org.apache.spark.sql.types.Metadata.empty())
    copies = [
        expressions.Alias(
            time, time.name(), expressions.NamedExpression.newExprId(), empty, no_metadata, empty
        )
        for time in times
    ]
    child = plans.Project(
        scala_sequence(java, [*scala_items(plan.child().output()), *copies]), plan.child()
    )
    replaced = list(zip(times, scala_items(child.output())[-len(times) :], strict=True))
    copied = partial(replace_expressions, replaced=replaced, within_aggregates=False)
    groups = list(map(copied, scala_items(plan.groupingExpressions())))
    items = []
    for item in scala_items(plan.aggregateExpressions()):
        value = copied(item)
        if class_name(value) == "AttributeReference" and value is not item:
            value = expressions.Alias(
                value, item.name(), item.exprId(), item.qualifier(), none, empty
            )
        items.append(value)
    return plans.Aggregate(
        scala_sequence(java, groups), scala_sequence(java, items), child, plan.hint()
    )


def _has(expression: Any, *keys: str) -> bool:
    """Returns whether an expression is a column whose metadata has one of the keys."""
    return class_name(expression) == "AttributeReference" and has_metadata(expression, *keys)
