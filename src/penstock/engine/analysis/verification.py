"""Comparison of a plan's decisions about SQL with Spark's analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.core.errors import PlanError
from penstock.engine.catalyst.java_trees import (
    children_of,
    contains_pattern,
    expressions_of,
    is_deterministic,
)
from penstock.engine.catalyst.spark_plan import analyzed_plan, equal_nodes, scala_items
from penstock.plan.node import Node

_STATEFUL = frozenset(
    [
        "Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Window",
        "GlobalLimit", "LocalLimit", "Tail", "Offset", "Except", "Intersect", "Pivot", "CoGroup",
        "MapGroups", "FlatMapGroupsInPandas", "FlatMapCoGroupsInPandas", "FlatMapGroupsInArrow",
        "FlatMapCoGroupsInArrow", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState",
        "TransformWithState", "TransformWithStateInPySpark",
    ]
)  # fmt: skip
"""The operators that compare a row with rows of other batches."""
_JOINS = frozenset({"Join", "LateralJoin", "AsOfJoin", "NearestByJoin"})
_CLOCKS = frozenset({"CurrentTimestamp", "CurrentDate", "CurrentTime", "LocalTimestamp", "Now"})


def check_decisions(node: Node, frame: DataFrame, streams: Mapping[str, DataFrame]) -> None:
    """Raises PlanError if Spark's analysis of a relation contradicts the plan.

    `frame` is the output of `node`, and `streams` are its inputs that are streams.
    """
    plan = analyzed_plan(frame)
    analysis = _Analysis(
        [analyzed_plan(stream) for stream in streams.values()],
        frozenset(map(str.lower, streams)),
        reads_clock=contains_pattern(plan, "CURRENT_LIKE", False),
        has_subqueries=contains_pattern(plan, "PLAN_EXPRESSION", False),
    )
    analysis.visit(plan)
    if analysis.defines_watermark:
        raise PlanError(
            f"{node.label} defines a watermark in SQL",
            code="watermark-in-sql",
            hint="Set watermark: {column: ..., delay: ...} on a source, or on a transform that "
            "computes the column.",
        )
    is_stateless = not (node.stateful or node.updating or node.batch_scoped)
    if analysis.state is not None and is_stateless:
        raise PlanError(
            f"{node.label}: Spark's plan keeps rows of earlier batches ({analysis.state}), which "
            "the text of the query does not show",
            code="unexpected-state",
            hint="Set scope: batch to compute the query on each batch, or call built-in functions "
            "by their names.",
        )
    if analysis.chance is not None and node.deterministic:
        raise PlanError(
            f"{node.label}: Spark's plan is not deterministic ({analysis.chance}), which the text "
            "of the query does not show",
            code="unexpected-chance",
            hint="Call built-in functions by their names.",
        )


@dataclass
class _Analysis:
    """Facts of a plan above its inputs.

    `state` is an operator with state, `chance` a nondeterministic expression, `defines_watermark`
    whether an operator defines a watermark.
    """

    inputs: list[Any]
    views: frozenset[str]
    reads_clock: bool
    has_subqueries: bool
    state: str | None = None
    chance: str | None = None
    defines_watermark: bool = False

    def visit(self, plan: Any) -> bool:
        """Adds the facts of a plan. Returns whether the plan reads a stream."""
        kind = str(plan.nodeName())
        if kind == "View":
            return str(plan.desc().identifier().table()).lower() in self.views
        if any(equal_nodes(plan, input_) for input_ in self.inputs):
            return True
        children = [self.visit(child) for child in children_of(plan)]
        found = scala_items(plan.subqueries()) if self.has_subqueries else []
        subqueries = [self.visit(query) for query in found]
        reads = any(children) or any(subqueries)
        if kind.endswith("EventTimeWatermark"):
            self.defines_watermark = True
        compares = kind in _STATEFUL or (kind == "Sort" and getattr(plan, "global")())
        joins = kind in _JOINS and sum(children) + sum(subqueries) > 1
        if any(subqueries) or joins or (reads and compares):
            self.state = kind
        self.chance = self.chance or next(self._chances(kind, plan), None)
        return reads

    def _chances(self, kind: str, plan: Any) -> Iterator[str]:
        """Yields the names of what is nondeterministic in one operator."""
        if kind == "Sample":
            yield kind
        for expression in expressions_of(plan):
            if not is_deterministic(expression):
                yield from _nondeterministic(expression)
            if self.reads_clock and contains_pattern(expression, "CURRENT_LIKE", False):
                yield from _clocks(expression)


def _nondeterministic(expression: Any) -> Iterator[str]:
    """Yields the names of the innermost nondeterministic expressions but user-defined functions."""
    children = [child for child in children_of(expression) if not is_deterministic(child)]
    for child in children:
        yield from _nondeterministic(child)
    name = str(expression.nodeName())
    if not children and not name.endswith("UDF"):
        yield name


def _clocks(expression: Any) -> Iterator[str]:
    """Yields the names of the expressions that read the current time."""
    if expression.nodeName() in _CLOCKS:
        yield str(expression.nodeName())
    for child in children_of(expression):
        yield from _clocks(child)
