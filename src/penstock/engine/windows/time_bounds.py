"""Conditions of outer joins of streams that do not bound event times.

Spark derives the time at which a row without a match is written, and its state removed, from the
comparisons in the condition of a join. It also takes a comparison of other columns for a bound, as
`left.number > 1`: its rows would be kept for ever and never written. Source: `StreamingJoinHelper`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_trees import children_of, is_stream, references_of
from penstock.engine.catalyst.spark_plan import (
    WATERMARK_DELAY,
    class_name,
    conjuncts,
    has_metadata,
    rewrite_streams,
)

_EQUALITIES = frozenset({"EqualNullSafe", "EqualTo"})
_PRESERVED = {"LeftOuter": (0,), "RightOuter": (1,), "FullOuter": (0, 1)}


def by_time_bounds_only(frame: DataFrame) -> DataFrame:
    """Returns a stream whose outer joins are bounded by comparisons of event times only."""
    return rewrite_streams(frame, _rewrite, "OUTER_JOIN")


def _rewrite(plan: Any, java: Any) -> Any:
    preserved = _PRESERVED.get(class_name(plan.joinType())) if class_name(plan) == "Join" else None
    sides = children_of(plan)
    if preserved is None or not all(map(is_stream, sides)):
        return plan
    condition = plan.condition()
    parts = conjuncts(condition.get()) if condition.isDefined() else []
    hidden = [_is_mistaken(part, sides, preserved) for part in parts]
    if not any(hidden):
        return plan
    expressions = java.org.apache.spark.sql.catalyst.expressions
    # Spark reads no bound from an expression of this class, which has the value of its child.
    new = [
        expressions.KnownNullable(part) if is_hidden else part
        for part, is_hidden in zip(parts, hidden, strict=True)
    ]
    return java.org.apache.spark.sql.catalyst.plans.logical.Join(
        plan.left(), plan.right(), plan.joinType(),
        java.scala.Option.apply(reduce(expressions.And, new)), plan.hint(),
    )  # fmt: skip


def _is_mistaken(part: Any, sides: Sequence[Any], preserved: Sequence[int]) -> bool:
    """Returns whether Spark may take a part of a condition for a bound that it is not.

    Its optimizer makes comparisons of other expressions, as of NOT. A part that reads no preserved
    side is evaluated below the join.
    """
    columns = references_of(part)
    reads = [any(side.outputSet().contains(column) for column in columns) for side in sides]
    if not any(reads[index] for index in preserved):
        return False
    is_key = class_name(part) in _EQUALITIES
    is_bound = all(has_metadata(column, WATERMARK_DELAY) for column in columns)
    return not (all(reads) and (is_key or is_bound))
