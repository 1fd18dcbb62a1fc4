"""Columns as expressions, added to those that are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sql import facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class MapConfig(Config):
    set: dict[str, str]
    """A map of column to Spark SQL expression.

    All expressions see the input's columns, not each other's results."""


class Map(Relation[MapConfig]):
    """Adds columns, or replaces those of the same name, and keeps all others.

    Parallel by partition.

    ```yaml
    type: map
    from: flights
    set:
      dep_hours: dep_delay / 60
      carrier: upper(carrier)
    ```
    """

    def deterministic(self) -> bool:
        return facts.deterministic(*self.config.set.values())

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import expr

        (frame,) = inputs.values()
        return frame.withColumns({name: expr(text) for name, text in self.config.set.items()})
