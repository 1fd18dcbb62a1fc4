"""The late rows of a query: the capture of their candidates, and the search among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from penstock.engine.build_context import BuildContext
from penstock.engine.late.late_rows import STAGES, LateNode, LateRows, find_exact_paths
from penstock.engine.tasks.dead_letter_writer import Spool, Stage
from penstock.engine.tasks.late_candidates import LateCapture
from penstock.plan.model import Query
from penstock.plan.node import Node


def find_late_rows(
    context: BuildContext, query: Query, root: DataFrame, watermarks: Mapping[str, str]
) -> LateRows | None:
    """Returns the search for the late rows of a query; None if only Spark can count them.

    `root` is built without checks of rows. `watermarks` has the nodes of watermarks on computed
    columns, by the ID of the watermark in Spark. Raises PlanError if late rows become dead letters,
    and cannot be found row by row.
    """
    if not context.has_late_rows(query):
        return None
    nodes = [context.plan.nodes[name] for name in query.stream_nodes]
    nodes = [node for node in nodes if node.watermark is not None]
    paths = find_exact_paths(query, root, nodes, watermarks)
    if paths is None or context.checkpoint is None or context.spool is None:
        return None
    late = {
        node.name: LateNode.of(
            node, *(_late_spool(context, node, query, stage) for stage in STAGES)
        )
        for node in nodes
    }
    return LateRows(context.session, context.checkpoint, context.spool / query.name, late, paths)


def _late_spool(context: BuildContext, node: Node, query: Query, stage: Stage) -> Spool:
    return replace(
        context.make_spool(node, query, stage), on_error="dead_letter", by_query=True,
        report_dead_letters=context.report_dead_letters,
    )  # fmt: skip


def late_capture(context: BuildContext, node: Node, query: Query) -> LateCapture | None:
    """Returns the capture of the candidates of a node for late rows of a query, or None."""
    if context.checkpoint is None or context.spool is None or context.sentinel_only:
        return None
    if node.watermark is None or query not in context.plan.with_windows:
        return None
    return LateCapture(str(context.checkpoint), node.watermark.column)
