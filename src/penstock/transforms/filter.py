"""Keep the rows for which a condition holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sql import facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FilterConfig(Config):
    where: str
    """A Spark SQL condition over the columns of the input."""


class Filter(Relation[FilterConfig]):
    """Keep the rows for which a condition holds; a condition that is null drops the row.

    Parallel by partition.

    ```yaml
    type: filter
    from: flights
    where: dep_delay > 60 AND origin = 'JFK'
    ```
    """

    def deterministic(self) -> bool:
        return facts.deterministic(self.config.where)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        return frame.where(self.config.where)
