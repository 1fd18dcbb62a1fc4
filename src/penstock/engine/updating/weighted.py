"""Weighted plans: logical plans of Spark whose rows are changes of a multiset.

One column of a weighted plan is a weight: 1 for a row that is added, -1 for a row
that is retracted.
The other columns have the expression IDs of the plan in whose place the weighted plan is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, scala_items
from penstock.engine.updating.rows import WEIGHT


@dataclass(frozen=True)
class Weighted:
    """A weighted plan. Without a weight, the rows are those of a static table.

    With `inserts_only` no batch takes rows back, with `adds_only` this batch takes none back.
    """

    plan: Any
    weight: Any | None
    inserts_only: bool = False
    adds_only: bool = False

    @property
    def is_static(self) -> bool:
        """Whether the rows are no changes."""
        return self.weight is None


def weighted_leaf(
    catalyst: Catalyst, rows: DataFrame, leaf: Any, *, inserts_only: bool = False
) -> Weighted:
    """Returns rows with the column `WEIGHT`, their last one, with the attributes of a leaf."""
    plan = analyzed_plan(rows)
    *columns, weight = scala_items(plan.output())
    targets = scala_items(leaf.output())
    named = catalyst.rename(columns, targets)
    plan = catalyst.project(plan, [*named, weight])
    return Weighted(plan, weight, inserts_only, adds_only=inserts_only)


def union(catalyst: Catalyst, first: Weighted, second: Weighted, output: Sequence[Any]) -> Weighted:
    """Returns the rows of two weighted plans with the attributes `output` of the first one."""
    names = [f"c{index}" for index in range(len(output))]
    one = catalyst.project(first.plan, [*output, first.weight])
    other = catalyst.frame(catalyst.project(second.plan, [*output, second.weight]))
    other = analyzed_plan(other.toDF(*names, WEIGHT))
    plan = catalyst.plans.Union(catalyst.sequence([one, other]), False, False)
    inserts_only = first.inserts_only and second.inserts_only
    return Weighted(plan, first.weight, inserts_only, first.adds_only and second.adds_only)


def signed(catalyst: Catalyst, plan: Any, sign: int) -> Weighted:
    """Returns a plan whose rows are all added (1) or all retracted (-1)."""
    plan, weight = catalyst.with_column(plan, lit(sign), WEIGHT)
    return Weighted(plan, weight, adds_only=sign > 0)
