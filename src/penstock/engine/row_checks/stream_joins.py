"""Rows of a join of two streams, on which expressions of the same SQL may fail.

The state of a join has the columns that the plan above the join reads, and a check reads all
columns of the joined rows. Filters are therefore moved and columns removed first, as by Spark's
optimizer.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name, scala_items
from penstock.engine.row_checks.checked_plan import without_ctes

_OPTIMIZATIONS = ("PushDownPredicates", "ColumnPruning")
_ROUNDS = 3


def is_stream_join(plan: Any) -> bool:
    """Returns whether an operator joins two streams."""
    return class_name(plan) == "Join" and all(
        side.isStreaming() for side in scala_items(plan.children())
    )


def with_joined_columns(frame: DataFrame) -> Any:
    """Returns the plan of a frame whose joins have only the columns that the plan reads."""
    catalyst = Catalyst(frame.sparkSession).java.org.apache.spark.sql.catalyst
    plan = catalyst.analysis.EliminateView.apply(without_ctes(frame))
    plan = catalyst.analysis.EliminateSubqueryAliases.apply(plan)
    for rule in _OPTIMIZATIONS * _ROUNDS:
        plan = getattr(catalyst.optimizer, rule).apply(plan)
    return plan
