"""The tracker of a running query: the watermarks of which the watermark of the query is the least.

The watermark of the query moves at the end of a batch, as the watermark of a batch that Spark has
considered cannot change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.catalyst.spark_plan import scala_items


class WatermarkTracker:
    """The watermarks of a running query by ID, in milliseconds since 1970.

    Spark has a watermark for each operator with one. Others may be added.
    """

    def __init__(self, session: SparkSession, query: StreamingQuery) -> None:
        self._gateway: Any = session.sparkContext._gateway
        self._tracker = _field(query._jsq.streamingQuery(), "watermarkTracker")

    def watermarks(self) -> Mapping[str, int]:
        """Returns the watermarks by ID, 0 before the first row; none before the first batch."""
        if self._tracker is None:
            return {}
        known = self._tracker.watermarkMap()
        keys = {str(key.toString()): key for key in scala_items(known.keys().toSeq())}
        return {name: _milliseconds(known.apply(key)) for name, key in keys.items()}

    def set(self, name: str, watermark: int) -> None:
        """Sets the watermark of an ID, a UUID. It may be a new one."""
        java = self._gateway.jvm
        # Python's small integers would become 32-bit integers of Java.
        value = self._gateway.new_array(java.long, 1)
        value[0] = watermark
        option = java.scala.collection.immutable.ArraySeq.unsafeWrapArray(value).headOption()
        watermarks = _field(self._tracker, "operatorToWatermarkMap")
        watermarks.put(java.java.util.UUID.fromString(name), option)


def _milliseconds(watermark: Any) -> int:
    return 0 if watermark.isEmpty() else int(watermark.get())


def _field(owner: Any, name: str) -> Any:
    """Returns a private field of a Java object."""
    field_ = owner.getClass().getDeclaredField(name)
    field_.setAccessible(True)
    return field_.get(owner)
