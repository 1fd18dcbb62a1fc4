"""Aggregations of Spark's plans, divided into the rows of groups and expressions over these rows.

The rows of groups are an aggregation, too, of the groups and the results of aggregate functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, map_children, scala_items


def divide_as_planned(catalyst: Catalyst, aggregate: Any) -> tuple[Any, list[Any]]:
    """Returns the rows of groups, and the columns of an aggregation as expressions over the rows.

    The functions are in the order of Spark's physical plan, as those of the state of a stream.
    """
    planning = catalyst.java.org.apache.spark.sql.catalyst.planning
    parts = getattr(planning, "PhysicalAggregation$").__getattr__("MODULE$").unapply(aggregate)
    found = parts.get()
    groups, calls, results = map(scala_items, (found._1(), found._2(), found._3()))
    return _with_functions(catalyst, aggregate, groups, calls), results


def divide_in_order(
    catalyst: Catalyst, aggregate: Any, calls: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """Returns the same as `divide_as_planned`, with the aggregate functions in this order.

    Groups are columns or constants.
    """
    groups = scala_items(aggregate.groupingExpressions())
    columns = [group for group in groups if class_name(group) == "AttributeReference"]
    rows = _with_functions(catalyst, aggregate, columns, calls)
    results = [(call, call.resultAttribute()) for call in calls]
    items = scala_items(aggregate.aggregateExpressions())
    return rows, [replace_calls(item, results) for item in items]


def _with_functions(
    catalyst: Catalyst, aggregate: Any, groups: Sequence[Any], calls: Sequence[Any]
) -> Any:
    """Returns the aggregation of groups and the results of aggregate functions."""
    named = catalyst.rename(calls, [call.resultAttribute() for call in calls])
    return catalyst.plans.Aggregate(
        aggregate.groupingExpressions(),
        catalyst.sequence([*groups, *named]),
        aggregate.child(),
        aggregate.hint(),
    )


def replace_calls(expression: Any, results: Sequence[tuple[Any, Any]]) -> Any:
    """Returns an expression with the results in place of the calls of aggregate functions."""
    if class_name(expression) == "AggregateExpression":
        same = expression.resultId().id()
        return next(result for call, result in results if call.resultId().id() == same)
    return map_children(expression, lambda child: replace_calls(child, results))
