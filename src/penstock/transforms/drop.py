"""The transform `drop`: removes columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sql.keyed_rows import KeyedRows
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DropConfig(Config):
    columns: list[str]
    """The columns to remove."""


class Drop(Relation[DropConfig]):
    """Removes columns.

    Parallel by partition. Without the operation column of changes all rows are inserts.

    ```yaml
    type: drop
    from: flights
    columns: [tailnum]
    ```
    """

    incremental = True

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return rows.without(self.config.columns)

    def output_operation(self, column: str) -> str | None:
        return None if column in self.config.columns else column

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        return frame.drop(*self.config.columns)
