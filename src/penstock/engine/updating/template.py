"""Plans of updating transforms over tables, in the form in which their changes are computed.

Only some of Spark's optimizations are applied, in a fixed order: the columns of the state must be
the same in each batch and after a restart.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.catalyst.views import create_view
from penstock.engine.lookups.lookup_joins import join_lookups
from penstock.engine.row_checks.checked_plan import without_ctes
from penstock.engine.updating.rows import WEIGHT
from penstock.engine.windows.calendar_rows import without_untimed_rows
from penstock.plan.node import Node

_REWRITES = (
    "PullupCorrelatedPredicates", "RewriteExceptAll", "RewriteIntersectAll",
    "ReplaceIntersectWithSemiJoin", "ReplaceExceptWithAntiJoin", "ReplaceDistinctWithAggregate",
    "RewriteCorrelatedScalarSubquery", "RewriteLateralSubquery", "RewritePredicateSubquery",
    "PullOutGroupingExpressions",
)  # fmt: skip
"""The rules that replace subqueries and set operations by joins and aggregates by columns."""
_OPTIMIZATIONS = ("PushDownPredicates", "ColumnPruning", "CollapseProject", "RemoveNoopOperators")
_ROUNDS = 3


def leaves_of(weighted: Mapping[str, DataFrame], session: SparkSession) -> dict[str, DataFrame]:
    """Returns an empty table in place of each input with weights."""
    return {
        name: empty_table(frame.drop(WEIGHT), session)
        for name, frame in weighted.items()
        if WEIGHT in frame.columns
    }


def empty_table(rows: DataFrame, session: SparkSession) -> DataFrame:
    """Returns an empty table with the columns of rows, which Spark does not optimize away."""
    java_rows: Any = rows._jdf
    java_session: Any = session._jsparkSession
    context: Any = session.sparkContext._jsc
    is_streaming = False
    table = java_session.internalCreateDataFrame(
        context.emptyRDD().rdd(), java_rows.schema(), is_streaming
    )
    return DataFrame(table, session)


def rdd_of(leaf: DataFrame) -> int:
    """Returns the ID of the RDD of an empty table."""
    return int(analyzed_plan(leaf).rdd().id())


def table_of(
    node: Node,
    inputs: Mapping[str, DataFrame],
    session: SparkSession,
    *,
    keeps_untimed: bool = False,
) -> DataFrame:
    """Returns the output of a transform over tables. The inputs become temporary views.

    With `keeps_untimed` windows of the calendar have rows without a time.
    """
    assert node.frame_transform is not None
    transform = copy.copy(node.frame_transform)
    transform.changes = None
    for name, frame in inputs.items():
        create_view(frame, name)
    table = join_lookups(transform.relate(inputs, session))
    return table if keeps_untimed else without_untimed_rows(table)


def table_plan(table: DataFrame) -> Any:
    """Returns the plan of a table of `table_of`."""
    analysis = _catalyst(table.sparkSession).analysis
    plan = analysis.EliminateView.apply(without_ctes(table))
    return rewritten(analysis.EliminateSubqueryAliases.apply(plan), table.sparkSession)


def rewritten(plan: Any, session: SparkSession) -> Any:
    """Returns a plan without set operations and subqueries, but uncorrelated scalar subqueries."""
    rules = _catalyst(session).optimizer
    for rule in (*_REWRITES, *_OPTIMIZATIONS * _ROUNDS):
        plan = getattr(rules, rule).apply(plan)
    return plan


def reads(plan: Any, leaves: Collection[int]) -> bool:
    """Returns whether a plan reads one of the RDDs `leaves`, also in a subquery."""
    if class_name(plan) == "LogicalRDD" and int(plan.rdd().id()) in leaves:
        return True
    below = [*children_of(plan), *scala_items(plan.subqueries())]
    return any(reads(each, leaves) for each in below)


def _catalyst(session: SparkSession) -> Any:
    java: Any = java_names(session)
    return java.org.apache.spark.sql.catalyst
