"""Top-N: keeps the first N rows of a key in each batch.

`WHERE place <= 3` over `ROW_NUMBER() OVER (PARTITION BY key ORDER BY ...) AS place` drops all other
rows. If no row is ever retracted, a row that is not among the first ones of its own batch never
gets there: it needs no state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import Column, Window
from pyspark.sql.functions import monotonically_increasing_id, row_number

from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, conjuncts, scala_items
from penstock.engine.updating.buckets import partitions_of
from penstock.engine.updating.colocation import reads_colocated
from penstock.engine.updating.hashing import bucket_of
from penstock.engine.updating.weighted import Weighted

_MOST = 100
"""The number of rows of a key up to which sorting a batch costs less than keeping its rows."""
_BOUNDS = {"LessThanOrEqual": 0, "LessThan": -1, "EqualTo": 0}
"""The comparisons of a place with a number, and their last place after this number."""
_FLIPPED = {"GreaterThanOrEqual": 0, "GreaterThan": -1, "EqualTo": 0}
"""The comparisons of a number with a place."""


def limited_window(filter_: Any) -> tuple[int, int] | None:
    """Returns the ID of the places that a filter limits, and the last place; None for others.

    The places are those of a window function below the filter, with only projections between.
    """
    below = filter_.child()
    while class_name(below) == "Project":
        below = below.child()
    place = _place(below) if class_name(below) == "Window" else None
    if place is None:
        return None
    limits = [_limit(each, place) for each in conjuncts(filter_.condition())]
    known = [limit for limit in limits if limit is not None and 1 <= limit <= _MOST]
    return (place, min(known)) if known else None


def first_rows(
    catalyst: Catalyst, window: Any, changes: Weighted, limit: int, buckets: int
) -> Weighted:
    """Returns the first rows of each key of a window in a batch, with their order of arrival.

    Rows that come from no operator with state are divided as the changes of an operator with the
    same key, so that Spark does not divide them again for it.
    """
    attributes = scala_items(changes.plan.output())
    plan, arrival = catalyst.with_column(changes.plan, monotonically_increasing_id(), "arrival")
    key = scala_items(window.partitionSpec())
    keys = [catalyst.column(each) for each in key]
    if not reads_colocated(plan):
        bucket, partitions = (
            bucket_of(catalyst, key, buckets),
            partitions_of(catalyst.session, buckets),
        )
        plan = analyzed_plan(catalyst.frame(plan).repartition(partitions, bucket))
        keys = [bucket, *keys]
    order = [_sorted(catalyst, each) for each in scala_items(window.orderSpec())]
    sorted_ = Window.partitionBy(*keys).orderBy(*order, catalyst.column(arrival))
    plan, place = catalyst.with_column(plan, row_number().over(sorted_), "place")
    first = analyzed_plan(catalyst.frame(plan).where(catalyst.column(place) <= limit))
    return replace(changes, plan=catalyst.project(first, attributes))


def _sorted(catalyst: Catalyst, order: Any) -> Column:
    """Returns a part of ORDER BY as a column."""
    nulls = str(order.nullOrdering().sql()).replace(" ", "_")
    method = f"{order.direction().sql()}_{nulls}".lower()
    column: Column = getattr(catalyst.column(order.child()), method)()
    return column


def _place(window: Any) -> int | None:
    """Returns the ID of the row number that a window computes, if that is all it computes."""
    functions = scala_items(window.windowExpressions())
    parts = window.orderSpec(), window.partitionSpec()
    if len(functions) != 1 or not all(map(scala_items, parts)):
        return None
    function = functions[0]
    while class_name(function) in ("Alias", "WindowExpression"):
        function = children_of(function)[0]
    return int(functions[0].exprId().id()) if class_name(function) == "RowNumber" else None


def _limit(condition: Any, place: int) -> int | None:
    """Returns the last place that fulfils a comparison of places with a number."""
    kind = class_name(condition)
    for bounds, sides in ((_BOUNDS, ("left", "right")), (_FLIPPED, ("right", "left"))):
        if kind not in bounds:
            continue
        attribute, number = (getattr(condition, side)() for side in sides)
        if (
            class_name(attribute) == "AttributeReference"
            and int(attribute.exprId().id()) == place
            and class_name(number) == "Literal"
            and isinstance(number.value(), int)
        ):
            return int(number.value()) + bounds[kind]
    return None
