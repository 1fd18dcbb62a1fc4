"""Keys of full outer joins of streams that can be null on both sides.

Spark's full outer join of streams hashes both sides, so that null equals null. Spark declares all
columns of a streaming aggregation as nullable. A key is therefore traced to the column that it has
been computed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.engine.spark_plan import WINDOWS, class_name, has_metadata, scala_items


def nullable_equalities(join: Any) -> Iterator[str]:
    """Yields the equalities in the condition of a join whose sides are both nullable."""
    inputs = scala_items(join.children())
    pending = [join.condition().get()] if join.condition().isDefined() else []
    while pending:
        expression = pending.pop()
        if expression.nodeName() == "And":
            pending += scala_items(expression.children())
        elif expression.nodeName() == "EqualTo" and all(
            _can_be_null(side, inputs) for side in scala_items(expression.children())
        ):
            yield str(expression.sql())


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
    children = scala_items(plan.children())
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
