"""Watermarks of the sources of a query where they do not follow Spark's."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from penstock.engine.build_context import BuildContext
from penstock.engine.watermarks.partition_watermarks import (
    PartitionedSource,
    PartitionWatermarks,
    partition_idle_time,
)
from penstock.engine.watermarks.watermark_tracker import WatermarkTracker
from penstock.plan.model import Query

_LIMIT = str(uuid.uuid5(uuid.NAMESPACE_OID, "past watermarks"))
"""The ID of a watermark that the watermark of the query does not exceed."""


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


@dataclass(frozen=True)
class PastWatermarks:
    """The watermarks of repeated batches, in milliseconds since 1970.

    An idle source or partition depends on the time of the first processing. `ids` are the IDs of
    the watermarks in Spark.
    """

    session: SparkSession
    ids: frozenset[str]
    watermarks: tuple[int, ...]

    def advance(self, query_id: str, batch: int) -> None:
        """Sets all watermarks to the one of the next batch, and limits them to it."""
        query = self.session.streams.get(query_id)
        if query is None or batch + 1 >= len(self.watermarks):
            return
        tracker, watermark = WatermarkTracker(self.session, query), self.watermarks[batch + 1]
        known = tracker.watermarks()
        for name in self.ids:
            tracker.set(name, max(watermark, known.get(name, 0)))
        tracker.set(_LIMIT, watermark)
