"""The transform `dedupe`: drops duplicate rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from penstock.sdk import Config, Relation
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DedupeConfig(Config):
    keys: list[str] = []
    """The columns that identify duplicates; all columns when empty."""
    within: Literal["watermark", "forever"] = "watermark"
    """The retention of keys in the state: until the watermark passes the row, or forever (the state
    grows without limit)."""


class Dedupe(Relation[DedupeConfig]):
    """Keeps the first row of each set of duplicates, across batches and restarts.

    Parallel by key. `within: watermark` requires a watermark on the source: duplicates that arrive
    within the watermark's delay are dropped (Spark: dropDuplicatesWithinWatermark).

    ```yaml
    type: dedupe
    from: flights
    keys: [flight_id]
    ```
    """

    emits_final_rows = True

    def stateful(self, streaming: frozenset[str]) -> bool:
        return bool(streaming)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        keys = self.config.keys or None
        require(frame, keys or [])
        if self.config.within == "forever":
            return frame.dropDuplicates(keys)
        return frame.dropDuplicatesWithinWatermark(keys)
