"""Watermarks of the sources of a query where they do not follow Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.engine.build_context import BuildContext
from penstock.engine.watermarks.partition_watermarks import (
    PartitionedSource,
    PartitionWatermarks,
    partition_idle_time,
)
from penstock.engine.watermarks.past_watermarks import PastWatermarks
from penstock.plan.model import Query


class SourceWatermarks(Protocol):
    """The watermarks of the sources of a query, where they do not follow Spark's."""

    def advance(self, query_id: str, batch: int) -> None:
        """Sets the watermarks after a batch, before Spark moves the watermark of the query."""


def source_watermarks(
    context: BuildContext, query: Query, ids: Mapping[str, str]
) -> SourceWatermarks | None:
    """Returns the watermarks of a query where they do not follow those of Spark, or None.

    `ids` are the IDs in Spark of the watermarks of nodes.
    """
    if not context.has_late_rows(query) or context.checkpoint is None or context.spool is None:
        return None
    if query.past_watermarks is not None:
        marks = frozenset(ids.values())
        return PastWatermarks(context.session, marks, query.past_watermarks)
    nodes = [context.plan.nodes[name] for name in query.stream_nodes]
    sources = tuple(
        PartitionedSource(node.name, ids[node.name], node.watermark.delay, idle)
        for node in nodes
        if node.watermark is not None and (idle := partition_idle_time(node)) is not None
    )
    if not sources:
        return None
    folder = context.spool / query.name
    return PartitionWatermarks(context.session, context.checkpoint, folder, sources)
