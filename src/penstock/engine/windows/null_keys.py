"""Keys of full outer joins of streams that can be null on both sides.

Spark's full outer join of streams hashes both sides, so that null equals null. A further equality
prevents that: its sides are 0 for known keys, 1 for a null on the left and 2 for one on the right.
Spark declares all columns of a streaming aggregation as nullable. A key is therefore traced to the
column that it has been computed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.spark_plan import (
    WINDOWS,
    class_name,
    conjuncts,
    has_metadata,
    rewrite_streams,
    scala_items,
)


def by_known_keys(frame: DataFrame) -> DataFrame:
    """Returns a stream whose full outer joins match no null keys."""
    return rewrite_streams(frame, _rewrite, "OUTER_JOIN")


def _rewrite(plan: Any, java: Any) -> Any:
    if class_name(plan) != "Join" or plan.joinType().toString() != "FullOuter":
        return plan
    if not all(map(is_stream, children_of(plan))):
        return plan
    equalities = list(_nullable_equalities(plan))
    if not equalities:
        return plan
    condition = plan.condition().get()
    for equality in equalities:
        left, right = children_of(equality)
        condition = _and_known(condition, left, right, java)
    condition = java.scala.Option.apply(condition)
    return java.org.apache.spark.sql.catalyst.plans.logical.Join(
        plan.left(), plan.right(), plan.joinType(), condition, plan.hint()
    )


def _and_known(condition: Any, left: Any, right: Any, java: Any) -> Any:
    """Returns a condition and the equality that no null keys meet."""
    expressions = java.org.apache.spark.sql.catalyst.expressions
    integer = java.org.apache.spark.sql.types.DataTypes.IntegerType
    sides = [
        expressions.If(
            expressions.IsNull(key),
            expressions.Literal(number, integer),
            expressions.Literal(0, integer),
        )
        for number, key in enumerate((left, right), 1)
    ]
    return expressions.And(condition, expressions.EqualTo(*sides))


def _nullable_equalities(join: Any) -> Iterator[Any]:
    """Yields the equalities in the condition of a join whose sides are both nullable."""
    inputs = children_of(join)
    condition = join.condition()
    for expression in conjuncts(condition.get()) if condition.isDefined() else ():
        if class_name(expression) == "EqualTo" and all(
            _can_be_null(side, inputs) for side in children_of(expression)
        ):
            yield expression


def _can_be_null(expression: Any, inputs: list[Any]) -> bool:
    """Returns whether an expression over the columns of plans can be null."""
    if not expression.nullable():
        return False
    if _is_window_field(expression):
        return _can_be_null(expression.child(), inputs)
    if class_name(expression) != "AttributeReference":
        return True
    for plan in inputs:
        for column in scala_items(plan.output()):
            if column.exprId().equals(expression.exprId()):
                return _column_can_be_null(column, plan)
    return True


def _is_window_field(expression: Any) -> bool:
    return class_name(expression) == "GetStructField" and _is_window(expression.child())


def _is_window(expression: Any) -> bool:
    # Spark drops rows without an event time before windows.
    named = class_name(expression) in ("AttributeReference", "Alias")
    return named and has_metadata(expression, *WINDOWS)


def _column_can_be_null(column: Any, plan: Any) -> bool:
    """Returns whether a column of the output of a plan can be null."""
    children = children_of(plan)
    kind = class_name(plan)
    if not column.nullable():
        return False
    if kind in ("Project", "Aggregate"):
        items = plan.projectList() if kind == "Project" else plan.aggregateExpressions()
        for item in scala_items(items):
            if class_name(item) == "Alias" and item.exprId().equals(column.exprId()):
                return not _is_window(item) and _can_be_null(item.child(), children)
    elif len(children) != 1 and not (kind == "Join" and plan.joinType().toString() == "Inner"):
        return True
    return _can_be_null(column, children)
