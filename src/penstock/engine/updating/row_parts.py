"""Parts of the plan of an updating transform that compute each row by itself, below all state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import class_name
from penstock.engine.row_checks.checked_plan import aggregated_values, without_ctes
from penstock.engine.updating.template import table_of
from penstock.plan.node import Node

_COMBINING = frozenset({
    "Aggregate", "Deduplicate", "Distinct", "Except", "GlobalLimit", "Intersect", "Join",
    "LocalLimit", "Offset", "Window",
})  # fmt: skip
"""Operators that combine rows."""


def row_parts(
    node: Node, tables: Mapping[str, DataFrame], session: SparkSession
) -> list[DataFrame]:
    """Returns the frames of an updating transform below the first operators that combine rows."""
    catalyst = Catalyst(session)
    plan = without_ctes(table_of(node, tables, session))
    return list(_parts(plan, catalyst))


def _parts(plan: Any, catalyst: Catalyst) -> Iterator[DataFrame]:
    children = children_of(plan)
    if any(map(_combines, children)):
        for child in children:
            yield from _parts(child, catalyst)
    elif class_name(plan) == "Aggregate":
        found = aggregated_values(plan, catalyst.expressions)
        values = [catalyst.column(value) for value in found]
        named = [value.alias(f"c{index}") for index, value in enumerate(values)]
        yield catalyst.frame(plan.child()).select(*named)
    elif class_name(plan) in _COMBINING:
        yield from map(catalyst.frame, children)
    else:
        yield catalyst.frame(plan)


def _combines(plan: Any) -> bool:
    return class_name(plan) in _COMBINING or any(map(_combines, children_of(plan)))
