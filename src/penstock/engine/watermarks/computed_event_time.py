"""Watermarks on computed columns."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from penstock.engine.build_context import BuildContext
from penstock.engine.late.late_search import late_capture
from penstock.engine.watermarks.watermark import add_watermark, check_event_times, sentinel_rows
from penstock.plan.graph import stream_sources
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.spec.node_models import Watermark


def add_computed_watermark(
    context: BuildContext,
    node: Node,
    watermark: Watermark,
    frame: DataFrame,
    frames: Mapping[str, DataFrame],
    query: Query,
) -> DataFrame:
    """Returns the rows of a node with its watermark on a computed column.

    `frames` has the sources of the node. They have no watermark of their own.
    """
    if context.sentinel_only:
        names = stream_sources(node.name, context.plan.nodes, context.plan.streams)
        sources = [frames[name] for name in names]
        rows = sentinel_rows(sources, frame.schema, watermark.column)
        return add_watermark(rows, watermark, drops_sentinel=True)
    if context.has_windows_below(node):
        spool = context.make_spool(node, query, "output")
        late = late_capture(context, node, query)
        frame = check_event_times(frame, watermark.column, spool, context.run_id, late)
    return add_watermark(frame, watermark)
