"""Streams that are analyzed once, and then executed with other tasks of their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.java_trees import nodes_of_class, with_nodes
from penstock.engine.catalyst.spark_plan import analyzed_plan, frame_of
from penstock.engine.sources.datasource import TASK
from penstock.engine.sources.pushdown import NODE
from penstock.plan.node import Node


def is_executable(
    nodes: Iterable[Node], frames: Mapping[str, DataFrame], *, is_known: bool
) -> bool:
    """Returns whether frames without rows are the streams of nodes but for the tasks of sources.

    Tables have no rows there. Known frames were built without a checkpoint and without a spool.
    """
    return all(
        node.name in frames and not node.static and not (is_known and _has_tasks(node))
        for node in nodes
    )


def _has_tasks(node: Node) -> bool:
    """Returns whether the plan of a node has tasks with a checkpoint or a spool."""
    if node.kind == "source":
        return node.computes_event_time
    transform = node.frame_transform
    rejects = transform is None or transform.rejects_rows
    return rejects or bool(node.checked_tables) or node.watermark is not None


def with_tasks(frame: DataFrame, tasks: Mapping[str, str]) -> DataFrame:
    """Returns a stream whose sources have other packed tasks, by their nodes. Reads no data.

    The tasks return rows of the same columns, so the plan remains analyzed.
    """
    java: Any = java_names(frame.sparkSession)
    plan = analyzed_plan(frame)
    scans = nodes_of_class(plan, "StreamingRelationV2")
    replaced = with_nodes(plan, [(scan, _with_task(scan, tasks, java)) for scan in scans])
    replaced.setAnalyzed()
    return frame_of(replaced, frame.sparkSession)


def _with_task(scan: Any, tasks: Mapping[str, str], java: Any) -> Any:
    given = scan.extraOptions()
    options = java.java.util.HashMap(given.asCaseSensitiveMap())
    options.put(TASK, tasks[given.get(NODE)])
    return scan.copy(
        scan.source(), scan.sourceName(), scan.table(),
        java.org.apache.spark.sql.util.CaseInsensitiveStringMap(options),
        scan.output(), scan.catalog(), scan.identifier(), scan.v1Relation(),
        scan.sourceIdentifyingName(),
    )  # fmt: skip
