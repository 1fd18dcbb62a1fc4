"""Casts to the type that a value has.

Spark removes them after the analysis. Until then a cast column has no watermark.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import is_stream
from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    analyzed_plan,
    class_name,
    frame_of,
    has_metadata,
    scala_items,
    scala_sequence,
)


def without_same_type_casts(frame: DataFrame) -> DataFrame:
    """Returns a stream whose selected event times keep their watermark in a cast to their type."""
    plan = analyzed_plan(frame)
    if not is_stream(plan) or class_name(plan) != "Project":
        return frame
    java: Any = java_names(frame.sparkSession)
    items = scala_items(plan.projectList())
    uncast = [_without_cast(item, java) for item in items]
    if all(new is old for new, old in zip(uncast, items, strict=True)):
        return frame
    plans = java.org.apache.spark.sql.catalyst.plans.logical
    project = plans.Project(scala_sequence(java, uncast), plan.child())
    return frame_of(project, frame.sparkSession)


def without_cast(expression: Any) -> Any:
    """Returns the value of a cast to the type of the value; any other expression itself."""
    if class_name(expression) != "Cast":
        return expression
    value = expression.child()
    return value if value.dataType().sameType(expression.dataType()) else expression


def _without_cast(item: Any, java: Any) -> Any:
    """Returns a column with a watermark in place of its cast; any other item itself."""
    if class_name(item) != "Alias" or class_name(item.child()) != "Cast":
        return item
    column = without_cast(item.child())
    if class_name(column) != "AttributeReference" or not has_metadata(column, WATERMARK_DELAY):
        return item
    none, empty = java.scala.Option.empty(), scala_sequence(java, [])
    expressions = java.org.apache.spark.sql.catalyst.expressions
    return expressions.Alias(column, item.name(), item.exprId(), item.qualifier(), none, empty)
