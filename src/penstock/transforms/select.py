"""The transform `select`: computes the columns of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.sdk import Config, Relation
from penstock.sdk.transform import Route
from penstock.sql import facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SelectConfig(Config):
    columns: list[str] | dict[str, str]
    """A list of columns and expressions (`price * 2 AS double_price`), or a map of new column to
    Spark SQL expression."""


class Select(Relation[SelectConfig]):
    """Selects columns and expressions; the output has no other columns.

    Parallel by partition.

    ```yaml
    type: select
    from: flights
    columns:
      flight: carrier || flight
      late: dep_delay > 60
    ```
    """

    def sql_texts(self) -> Sequence[tuple[Route, str]]:
        columns = self.config.columns
        items = enumerate(columns) if isinstance(columns, list) else columns.items()
        return [(("columns", key), text) for key, text in items]

    def deterministic(self) -> bool:
        columns = self.config.columns
        texts = columns if isinstance(columns, list) else columns.values()
        return facts.deterministic(*texts, functions=self.context.functions)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        columns = self.config.columns
        if isinstance(columns, list):
            return frame.selectExpr(*columns)
        from pyspark.sql.functions import expr

        return frame.select(*(expr(text).alias(name) for name, text in columns.items()))
