"""Operators whose changes can be computed, and the check of the operators of a plan."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.core.errors import PlanError
from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.spark_plan import class_name, scala_items
from penstock.engine.updating.template import reads

TRANSPARENT = frozenset({
    "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort",
    "SubqueryAlias", "View", "WindowGroupLimit",
})  # fmt: skip
"""Operators whose output is that of their input, as a multiset."""
ROW_BY_ROW = frozenset({"ArrowEvalPython", "BatchEvalPython", "Filter", "Generate"})
"""Operators that compute each row by itself, and keep the columns of their input."""
LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail"})
VISITED = frozenset({"Aggregate", "Expand", "Join", "Project", "Union", "Window"})
"""Operators with a method of `IncrementalPlan`."""
_SUPPORTED = frozenset({"LogicalRDD"}) | TRANSPARENT | ROW_BY_ROW | LIMITS | VISITED


def check_operators(plan: Any, leaves: Collection[int]) -> None:
    """Checks that all operators over `leaves`, RDDs, are supported. Raises PlanError."""
    if not reads(plan, leaves):
        return
    kind = class_name(plan)
    subqueries = any(reads(query, leaves) for query in scala_items(plan.subqueries()))
    if subqueries or kind not in _SUPPORTED:
        place = f"A subquery in {kind}" if subqueries else f"The operator {kind}"
        raise PlanError(
            f"{place} of Spark is not supported in an updating query",
            code="unsupported-updating",
            hint="Compute it in a transform before the updating query.",
        )
    if kind == "Window" and _numbers_unordered_rows(plan):
        raise PlanError(
            "LIMIT in a correlated subquery needs ORDER BY, by columns that the subquery selects",
            code="unsupported-updating",
            hint="Select the columns of ORDER BY, in a LATERAL subquery.",
        )
    for child in children_of(plan):
        check_operators(child, leaves)


def _numbers_unordered_rows(window: Any) -> bool:
    """Returns whether a window, as of LIMIT in a correlated subquery, numbers rows by no order."""
    functions = [
        class_name(function)
        for alias in scala_items(window.windowExpressions())
        for expression in children_of(alias)
        for function in children_of(expression)
    ]
    return "RowNumber" in functions and not scala_items(window.orderSpec())
