"""The transform `filter`: keeps the rows that meet a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FilterConfig(Config):
    where: str
    """A Spark SQL condition over the columns of the input."""


class Filter(Relation[FilterConfig]):
    """Keeps the rows for which a condition is true; null drops the row.

    Parallel by partition. Of changes, an update whose new row does not pass becomes a delete.

    ```yaml
    type: filter
    from: flights
    where: dep_delay > 60 AND origin = 'JFK'
    ```
    """

    incremental = True

    def sql_texts(self) -> Sequence[SqlText]:
        return [read_sql_text(("where",), self.config.where)]

    def filters_by_chance(self) -> bool:
        return determinism.has_chance(self.config.where)

    def deterministic(self) -> bool:
        return determinism.deterministic(self.config.where, functions=self.context.functions)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        (condition,) = self.sql_texts()
        operation = self.operation_column
        timeless = operation is None or determinism.deterministic(condition.text)
        if operation is None or (self.complete_changes and timeless):
            return frame.where(condition.text)
        from penstock.transforms.changes import filter_changes

        return filter_changes(frame, condition.text, operation, timeless=timeless)
