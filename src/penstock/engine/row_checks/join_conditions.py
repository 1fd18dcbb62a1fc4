"""Conditions of joins of two streams, divided by the rows on which their parts may fail.

Spark evaluates a part that reads one side for each row of this side, before the row enters the
state: a row on which it fails leaves the stream below the join. A part that reads both sides of an
inner join is a filter of the joined rows.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from penstock.engine.catalyst.fallible_expressions import find_failures
from penstock.engine.catalyst.java_trees import children_of, is_stream, reads_only, references_of
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    class_name,
    conjuncts,
    has_metadata,
    map_children,
)

EQUALITIES = frozenset({"EqualNullSafe", "EqualTo"})
_INNER = frozenset({"Cross", "Inner"})


def is_stream_join(plan: Any) -> bool:
    """Returns whether an operator joins two streams."""
    return class_name(plan) == "Join" and all(map(is_stream, children_of(plan)))


def side_values(join: Any, side: Any, expressions: Any) -> list[Any]:
    """Returns the parts of a join's condition that Spark evaluates for each row of a side.

    They are the keys, and the conjuncts that read only this side. `expressions` is Spark's package.
    """
    if not join.condition().isDefined():
        return []
    keys, own = [], []
    for part in conjuncts(join.condition().get()):
        if reads_only(part, side):
            own.append(part)
        elif _compares_sides(part, join):
            keys += [each for each in children_of(part) if reads_only(each, side)]
    return keys + ([reduce(expressions.And, own)] if own else [])


def with_filters_above(plan: Any, catalyst: Catalyst) -> Any:
    """Returns a plan whose inner joins of streams evaluate no part that may fail on joined rows.

    The parts are filters above the joins. Spark computes the end of the state from comparisons of
    event times, which remain in the condition.
    """
    plan = map_children(plan, lambda child: with_filters_above(child, catalyst))
    if not is_stream_join(plan) or class_name(plan.joinType()) not in _INNER:
        return plan
    condition = plan.condition()
    parts = conjuncts(condition.get()) if condition.isDefined() else []
    moved = [part for part in parts if _fails_on_joined_rows(part, plan)]
    if not moved:
        return plan
    kept = [part for part in parts if part not in moved]
    option = catalyst.java.scala.Option
    rest = option.apply(reduce(catalyst.expressions.And, kept)) if kept else option.empty()
    joined = catalyst.plans.Join(plan.left(), plan.right(), plan.joinType(), rest, plan.hint())
    return catalyst.plans.Filter(reduce(catalyst.expressions.And, moved), joined)


def _fails_on_joined_rows(part: Any, join: Any) -> bool:
    sides = children_of(join)
    if not find_failures(part) or any(reads_only(part, side) for side in sides):
        return False
    return not _compares_sides(part, join) and not all(
        any(
            has_metadata(column, WATERMARK_DELAY) and side.outputSet().contains(column)
            for column in references_of(part)
        )
        for side in sides
    )


def _compares_sides(part: Any, join: Any) -> bool:
    """Returns whether a part of a condition is the equality of a key of each side."""
    if class_name(part) not in EQUALITIES:
        return False
    keys, (left, right) = children_of(part), children_of(join)
    return any(
        reads_only(one, left) and reads_only(other, right) for one, other in (keys, reversed(keys))
    )
