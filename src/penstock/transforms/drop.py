"""The transform `drop`: removes columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sql.column_lineage import RemainingColumns
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DropConfig(Config):
    columns: list[str]
    """The columns to remove."""


class Drop(DataFrameTransform[DropConfig]):
    """Removes columns.

    Parallel by partition. Without the operation column of changes all rows are inserts.

    ```yaml
    type: drop
    from: flights
    columns: [tailnum]
    ```
    """

    def relation(self) -> Relation:
        return Relation(incremental=True, lineage=RemainingColumns(tuple(self.config.columns)))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        return frame.drop(*self.config.columns)
