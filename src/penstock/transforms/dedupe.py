"""One row of those that are alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from penstock.sdk import Config, Relation
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DedupeConfig(Config):
    keys: list[str] = []
    """The columns that make two rows alike; all columns when empty."""
    within: Literal["watermark", "forever"] = "watermark"
    """How long a row is remembered: until the watermark has passed it by its delay, or for ever
    (the state then grows without end)."""


class Dedupe(Relation[DedupeConfig]):
    """Keeps the first of the rows that are alike, across batches and restarts.

    Parallel by key. `within: watermark` needs a watermark on the source: duplicates that arrive
    within the watermark's delay are dropped (Spark: dropDuplicatesWithinWatermark).

    ```yaml
    type: dedupe
    from: flights
    keys: [flight_id]
    ```
    """

    def stateful(self, streaming: frozenset[str]) -> bool:
        return bool(streaming)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        keys = self.config.keys or None
        require(frame, keys or [])
        if self.config.within == "forever":
            return frame.dropDuplicates(keys)
        return frame.dropDuplicatesWithinWatermark(keys)
