"""Columns of the nodes of a stream that later nodes of the stream read.

The state of a join has only the columns that the whole stream reads. A check of a later node reads
whole rows. The other columns are null in a stream with checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from penstock.engine.catalyst.java_trees import (
    children_of,
    contains_pattern,
    nodes_of_class,
    references_of,
)
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.row_checks.join_conditions import is_stream_join
from penstock.engine.row_checks.stream_joins import JoinedPlan, optimize


def read_columns(frames: Mapping[str, DataFrame], root: DataFrame) -> dict[str, frozenset[int]]:
    """Returns the positions of the columns of nodes that the root of their stream reads.

    The stream has no checks. Nodes that are not downstream of a join of streams are left out, and
    nodes of which all columns are read, too.
    """
    found = {}
    for name, frame in frames.items():
        if frame is not root and has_stream_join(frame):
            positions = _read(root, frame)
            if positions is not None:
                found[name] = positions
    return found


def has_stream_join(frame: DataFrame) -> bool:
    """Returns whether a stream is computed from a join of two streams."""
    plan = analyzed_plan(frame)
    return contains_pattern(plan, "JOIN", only_streams=True) and any(
        map(is_stream_join, nodes_of_class(plan, "Join"))
    )


def with_columns_read(frame: DataFrame, positions: frozenset[int]) -> DataFrame:
    """Returns a stream whose other columns are null."""
    catalyst = Catalyst(frame.sparkSession)
    attributes = scala_items(analyzed_plan(frame).output())
    columns = [
        catalyst.column(attribute)
        if position in positions
        else lit(None).cast(field.dataType).alias(field.name)
        for position, (attribute, field) in enumerate(zip(attributes, frame.schema, strict=True))
    ]
    return frame.select(*columns)


def _read(root: DataFrame, frame: DataFrame) -> frozenset[int] | None:
    """Returns the positions of the columns of a frame that another one reads; None for all."""
    joined = JoinedPlan.over_leaves(root, [frame])
    plan = optimize(joined.plan, Catalyst(root.sparkSession))
    positions: frozenset[int] = frozenset()
    for leaf, used in _uses(plan, None):
        if used is None:
            return None
        ids = [int(column.exprId().id()) for column in scala_items(leaf.output())]
        positions |= {position for position, id_ in enumerate(ids) if id_ in used}
    return positions if joined.inputs else None


def _uses(plan: Any, used: frozenset[int] | None) -> Iterator[tuple[Any, frozenset[int] | None]]:
    """Yields the leaves of a plan with the IDs of the columns that the operators above read."""
    kind = class_name(plan)
    if kind == "LocalRelation":
        yield plan, used
    columns = references_of(plan)
    read = frozenset(int(column.exprId().id()) for column in columns)
    if kind == "Project":
        used = read
    else:
        used = used | read if kind == "Filter" and used is not None else None
    for child in children_of(plan):
        yield from _uses(child, used)
