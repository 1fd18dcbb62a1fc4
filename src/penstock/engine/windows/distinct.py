"""Aggregates of distinct values in streams: rows are aggregated by their values first.

Spark's optimizer has this form of such an aggregation, but does not accept the query as a stream.
Both aggregations have state, by which the windows, their rows and their late rows are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import children_of, is_constant, nodes_of_class
from penstock.engine.catalyst.spark_plan import (
    class_name,
    map_children,
    rewrite_streams,
    scala_items,
    scala_sequence,
)
from penstock.engine.windows.distinct_sets import over_sets


def by_distinct_values(frame: DataFrame) -> DataFrame:
    """Returns a stream without aggregates of distinct values, which has the same rows.

    Sums and averages of different distinct values are computed from sets. A query stays as it is if
    others of its aggregates are of different distinct values, which Spark's form has in no stable
    order, or if it also has `listagg` of sorted values.
    """
    try:
        return rewrite_streams(frame, _rewrite, "AGGREGATE")
    except Py4JError:
        return frame


def _rewrite(plan: Any, java: Any) -> Any:
    if class_name(plan) != "Aggregate":
        return plan
    written = items = scala_items(plan.aggregateExpressions())
    distinct = [each for item in items for each in _distinct(item)]
    if distinct and not _same_values(distinct):
        items = [over_sets(item, java) for item in items]
        distinct = [each for item in items for each in _distinct(item)]
    if distinct and not _same_values(distinct):
        return plan
    if not distinct and items is written:
        return plan
    filtered = [_with_filter(item, java) for item in items]
    if all(new is old for new, old in zip(filtered, written, strict=True)):
        return plan
    groups, columns = plan.groupingExpressions(), scala_sequence(java, filtered)
    plan = java.org.apache.spark.sql.catalyst.plans.logical.Aggregate(
        groups, columns, plan.child(), plan.hint()
    )
    optimizer: Any = java.org.apache.spark.sql.catalyst.optimizer
    if not distinct:
        return plan
    rule = getattr(optimizer, "RewriteDistinctAggregates$").__getattr__("MODULE$")
    return rule.rewrite(plan)


def _distinct(expression: Any) -> list[Any]:
    """Returns the aggregates of distinct values in an expression."""
    return [each for each in nodes_of_class(expression, "AggregateExpression") if each.isDistinct()]


def _same_values(aggregates: Sequence[Any]) -> bool:
    """Returns whether aggregates are of the same values under the same filter."""
    first, *others = [
        [
            *(each for each in children_of(one.aggregateFunction())
              if not is_constant(each)),
            *([one.filter().get()] if one.filter().isDefined() else []),
        ]
        for one in aggregates
    ]  # fmt: skip
    return all(
        len(first) == len(other)
        and all(one.semanticEquals(two) for one, two in zip(first, other, strict=True))
        for other in others
    )


def _with_filter(expression: Any, java: Any) -> Any:
    """Returns an expression whose aggregates of distinct values have a filter.

    Spark aggregates by values first if there is a filter.
    """
    if class_name(expression) == "AggregateExpression":
        if not expression.isDistinct() or expression.filter().isDefined():
            return expression
        literals = java.org.apache.spark.sql.catalyst.expressions.Literal
        always = java.scala.Option.apply(literals.TrueLiteral())
        function, mode = expression.aggregateFunction(), expression.mode()
        return expression.copy(function, mode, True, always, expression.resultId())
    return map_children(expression, lambda child: _with_filter(child, java))
