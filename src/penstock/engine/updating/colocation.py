"""Co-located keys: rows of operators whose partitions each have all rows of some keys.

Spark does not divide such rows again before an operator that needs the rows of a key together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items

_COLOCATED = "PartitioningCollection"
Key = tuple[str, ...]
"""The names of the columns of a key; `a.b` is the field `b` of the column `a`."""


def colocated(rows: DataFrame, keys: Sequence[Key]) -> DataFrame:
    """Returns computed rows, a leaf, with their partitioning by each of the keys.

    Rows with the same key must be in one partition. Two frames with keys of the same types must
    have the same key in partitions with the same number. Spark must not divide other rows in the
    same way, as by its own hash: it has coalesced partitions for that, which no shuffle makes. Of
    their bounds Spark uses only the number.
    """
    keys = [key for key in keys if key]
    if not keys:
        return rows
    catalyst, leaf = Catalyst(rows.sparkSession), analyzed_plan(rows)
    number = leaf.rdd().getNumPartitions()
    physical = catalyst.java.org.apache.spark.sql.catalyst.plans.physical
    java = catalyst.java
    bounds = java.java.util.Collections.nCopies(number, physical.CoalescedBoundary(0, 1))
    bounds = java.org.apache.spark.api.python.PythonUtils.toSeq(bounds)
    partitionings = []
    for key in keys:
        hashed = physical.HashPartitioning(catalyst.sequence(_expressions(rows, key)), number)
        partitionings.append(physical.CoalescedHashPartitioning(hashed, bounds))
    partitioning = physical.PartitioningCollection(catalyst.sequence(partitionings))
    plan = java.org.apache.spark.sql.execution.LogicalRDD(
        leaf.output(), leaf.rdd(), partitioning, leaf.outputOrdering(), leaf.isStreaming(),
        leaf.stream(), *scala_items(leaf.otherCopyArgs()),
    )  # fmt: skip
    return catalyst.frame(plan)


def reads_colocated(plan: Any) -> bool:
    """Returns whether a plan reads rows of `colocated`."""
    leaves = scala_items(plan.collectLeaves())
    rdds = (leaf for leaf in leaves if class_name(leaf) == "LogicalRDD")
    return any(class_name(rdd.outputPartitioning()) == _COLOCATED for rdd in rdds)


def _expressions(rows: DataFrame, key: Key) -> list[Any]:
    """Returns the expressions of a key of rows."""
    selected = analyzed_plan(rows.select(*map(col, key)))
    items = scala_items(selected.projectList())
    return [
        item if "." not in name else item.child() for name, item in zip(key, items, strict=True)
    ]
