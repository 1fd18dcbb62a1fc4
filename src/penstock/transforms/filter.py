"""The transform `filter`: keeps the rows that meet a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sdk.transform import Route
from penstock.sql import facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FilterConfig(Config):
    where: str
    """A Spark SQL condition over the columns of the input."""


class Filter(Relation[FilterConfig]):
    """Keeps the rows for which a condition is true; null drops the row.

    Parallel by partition.

    ```yaml
    type: filter
    from: flights
    where: dep_delay > 60 AND origin = 'JFK'
    ```
    """

    def sql_texts(self) -> Sequence[tuple[Route, str]]:
        return [(("where",), self.config.where)]

    def deterministic(self) -> bool:
        return facts.deterministic(self.config.where, functions=self.context.functions)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        return frame.where(self.config.where)
