"""The transform `dedupe`: drops duplicate rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from penstock.core.names import quote_name
from penstock.core.units import duration_text
from penstock.sdk import Config, DataFrameTransform, PlanError, PositiveDuration, Relation, State
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELAY = "spark.watermarkDelayMs"
"""The key of Spark's metadata of an event-time column: its span for a deduplication."""


class DedupeConfig(Config):
    keys: list[str] = []
    """The columns that identify duplicates; all columns when empty."""
    within: Literal["watermark", "forever"] | PositiveDuration = "watermark"
    """The least distance in event time of two rows with the same keys that are both kept, as
    `1 hour`. `watermark` is the watermark's delay. `forever` keeps one row of the keys, and the
    state grows without limit."""


class Dedupe(DataFrameTransform[DedupeConfig]):
    """Keeps the first row of each set of duplicates, across batches and restarts.

    A row is dropped if a row with the same keys is kept whose event time is the same, or less than
    `within` earlier or later. Rows are written at once. They are compared in the order of their
    source, and the result is the same for every division into batches. Partitions of a topic have
    no order between them: write rows with the same keys to one partition. Below an aggregation, a
    join of streams or another deduplication, the rows of a batch are in the order of event time.

    The state has the keys and the event time of each kept row until the watermark is `within`
    later. Late rows are dropped first. `delay` of the watermark is the greatest disorder of rows,
    and `within` the greatest distance of duplicates. Of rows without an event time the first one of
    its keys is kept. Without a watermark only `within: forever` is possible.

    Parallel by key.

    ```yaml
    type: dedupe
    from: flights
    keys: [flight_id]
    within: 1 hour
    ```
    """

    def relation(self) -> Relation:
        return Relation(state=State((self._state_content(),), version=2, emits_final_rows=True))

    def _state_content(self) -> str:
        within = self.config.within
        keys = ", ".join(self.config.keys) or "all columns"
        if within == "forever":
            return f"{keys} of each distinct row for ever"
        span = "the watermark's delay" if within == "watermark" else duration_text(within)
        return f"{keys} and the event time of each written row for {span}"

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        keys, within = self.config.keys or None, self.config.within
        require(self, frame, "keys", keys or [])
        if within == "forever":
            return frame.dropDuplicates(keys)
        times = [field for field in frame.schema.fields if _DELAY in (field.metadata or {})]
        if not times and not frame.isStreaming:
            raise PlanError(
                "the rows have no event time to compare",
                code="no-event-time",
                hint="Set a watermark on the source, or within: forever.",
            )
        if within == "watermark" or not times:
            return frame.dropDuplicatesWithinWatermark(keys)
        spans = {time.name: {**time.metadata, _DELAY: round(within * 1000)} for time in times}
        delays = {time.name: time.metadata for time in times}
        rows = _with_metadata(frame, spans).dropDuplicatesWithinWatermark(keys)
        return _with_metadata(rows, delays)


def _with_metadata(frame: DataFrame, metadata: Mapping[str, Mapping[str, Any]]) -> DataFrame:
    """Returns a frame whose columns have this metadata, by their names."""
    from pyspark.sql.functions import col

    return frame.select(
        *(
            col(quote_name(name)).alias(name, metadata=dict(metadata[name]))
            if name in metadata
            else col(quote_name(name))
            for name in frame.columns
        )
    )
