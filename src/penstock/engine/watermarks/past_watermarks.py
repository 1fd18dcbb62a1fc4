"""Watermarks of the original query, for repeated batches."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.engine.watermarks.watermark_tracker import WatermarkTracker

_LIMIT = str(uuid.uuid5(uuid.NAMESPACE_OID, "past watermarks"))
"""The ID of a watermark that the watermark of the query does not exceed."""


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
