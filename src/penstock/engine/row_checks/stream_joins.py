"""Joins of streams in the plan of a transform, as Spark's optimizer arranges them.

The state of a join has the columns that the plan above the join reads, and a check reads all
columns of the joined rows. Filters are therefore moved and columns removed first, as by Spark's
optimizer. The streams that the transform reads are leaves meanwhile and remain as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import contains_pattern, is_stream
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, equal_nodes, map_children
from penstock.engine.row_checks.checked_plan import without_ctes
from penstock.engine.row_checks.join_conditions import is_stream_join, with_filters_above
from penstock.engine.row_checks.result_rows import find_parts

_MOVES = ("EliminateOuterJoin", "PushDownPredicates", "ColumnPruning")
_OPTIMIZATIONS = (*_MOVES * 3, "InferFiltersFromConstraints", *_MOVES * 2)


LEAF = "LocalRelation"


def joins_streams(frame: DataFrame, inputs: Sequence[DataFrame]) -> bool:
    """Returns whether a transform reads several streams, or joins its stream with itself."""
    if len(inputs) != 1:
        return True
    plan = analyzed_plan(frame)
    if not contains_pattern(plan, "JOIN", only_streams=True):
        return False
    return len(JoinedPlan.over_leaves(frame, inputs).inputs) > 1


@dataclass(frozen=True)
class JoinedPlan:
    """The plan of a transform over leaves, and the plans in place of which the leaves are."""

    plan: Any
    inputs: list[tuple[Any, Any]]

    @classmethod
    def of(cls, frame: DataFrame, inputs: Sequence[DataFrame]) -> JoinedPlan:
        """Returns the plan of a frame that is computed from streams, with its joins arranged."""
        joined = cls.over_leaves(frame, inputs)
        if not find_parts(joined.plan, is_stream_join):
            return joined
        catalyst = Catalyst(frame.sparkSession)
        return cls(with_filters_above(optimize(joined.plan, catalyst), catalyst), joined.inputs)

    @classmethod
    def over_leaves(cls, frame: DataFrame, inputs: Sequence[DataFrame]) -> JoinedPlan:
        """Returns the plan of a frame that is computed from streams."""
        catalyst = Catalyst(frame.sparkSession)
        streams = [analyzed_plan(each) for each in inputs]
        leaves: list[tuple[Any, Any]] = []

        def replace(part: Any) -> Any:
            if not is_stream(part):
                return part
            if any(equal_nodes(part, each) or part.sameResult(each) for each in streams):
                leaf = catalyst.plans.LocalRelation(
                    part.output(), catalyst.sequence([]), True, catalyst.java.scala.Option.empty()
                )
                leaves.append((leaf, part))
                return leaf
            return map_children(part, replace)

        return cls(replace(without_ctes(frame)), leaves)

    def over_inputs(self, plan: Any, catalyst: Catalyst) -> Any:
        """Returns a plan over the leaves as a plan over the streams."""
        for leaf, stream in self.inputs:
            if equal_nodes(plan, leaf):
                return stream
        return map_children(plan, lambda child: self.over_inputs(child, catalyst))


def optimize(plan: Any, catalyst: Catalyst) -> Any:
    """Returns a plan with filters and columns as in Spark's optimized plan."""
    packages = catalyst.java.org.apache.spark.sql.catalyst
    plan = packages.analysis.EliminateView.apply(plan)
    plan = packages.analysis.EliminateSubqueryAliases.apply(plan)
    for rule in _OPTIMIZATIONS:
        plan = getattr(packages.optimizer, rule).apply(plan)
    return plan
