"""The transform `rename`: renames columns."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sql.keyed_rows import KeyedRows
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RenameConfig(Config):
    columns: dict[str, str]
    """A map of old name to new name."""


class Rename(Relation[RenameConfig]):
    """Renames columns and keeps their order.

    Parallel by partition.

    ```yaml
    type: rename
    from: flights
    columns: {dep_delay: delay}
    ```
    """

    incremental = True

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return rows.rename({old.lower(): new for old, new in self.config.columns.items()})

    def time_columns(self, times: Set[str]) -> Set[str]:
        names = {old.lower(): new for old, new in self.config.columns.items()}
        return {names.get(name.lower(), name) for name in times}

    def output_operation(self, column: str) -> str | None:
        return self.config.columns.get(column, column)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        return frame.withColumnsRenamed(self.config.columns)
