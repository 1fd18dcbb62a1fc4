"""The transform `rename`: renames columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sql.column_lineage import RenamedColumns
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RenameConfig(Config):
    columns: dict[str, str]
    """A map of old name to new name."""


class Rename(DataFrameTransform[RenameConfig]):
    """Renames columns and keeps their order.

    Parallel by partition.

    ```yaml
    type: rename
    from: flights
    columns: {dep_delay: delay}
    ```
    """

    def relation(self) -> Relation:
        return Relation(incremental=True, lineage=RenamedColumns(self.config.columns))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        return frame.withColumnsRenamed(self.config.columns)
