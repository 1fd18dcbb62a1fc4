"""Plans that have rows without rows of their inputs, such as a count without groups."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.spark_plan import class_name, scala_items

_PRESERVED = {
    "Cross": (), "ExistenceJoin": (0,), "FullOuter": (0, 1), "Inner": (), "LeftAnti": (0,),
    "LeftOuter": (0,), "LeftSemi": (), "LeftSingle": (0,), "RightOuter": (1,),
}  # fmt: skip
"""The sides of joins whose rows are in the output without a match."""


def has_rows_without_input(plan: Any, leaves: Collection[int]) -> bool:
    """Returns whether a plan may have rows while all `leaves`, RDDs, are empty."""
    kind = class_name(plan)
    children = children_of(plan)
    if not children:
        return kind != "LogicalRDD" or int(plan.rdd().id()) not in leaves
    if kind == "Aggregate" and not scala_items(plan.groupingExpressions()):
        return True
    found = [has_rows_without_input(child, leaves) for child in children]
    if kind != "Join":
        return any(found)
    preserved = _PRESERVED.get(class_name(plan.joinType()), (0, 1))
    return all(found) or any(found[side] for side in preserved)
