"""The transform `map`: adds and replaces columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism
from penstock.sql.column_lineage import AddedColumns
from penstock.sql.primary_keys import aliased

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class MapConfig(Config):
    set: dict[str, str]
    """A map of column to Spark SQL expression.

    All expressions refer to the columns of the input."""


class Map(DataFrameTransform[MapConfig]):
    """Adds columns or replaces columns of the same name, and keeps all others.

    Parallel by partition.

    ```yaml
    type: map
    from: flights
    set:
      dep_hours: dep_delay / 60
      carrier: upper(carrier)
    ```
    """

    def sql_texts(self) -> Sequence[SqlText]:
        return [read_sql_text(("set", name), text) for name, text in self.config.set.items()]

    def relation(self) -> Relation:
        written = self.config.set
        items = aliased({str(sql.route[-1]): sql.text for sql in self.sql_texts()})
        return Relation(
            deterministic=determinism.deterministic(
                *written.values(), functions=self.context.functions
            ),
            incremental=True,
            lineage=AddedColumns(tuple(written), tuple(items)),
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import expr

        (frame,) = inputs.values()
        return frame.withColumns({str(sql.route[-1]): expr(sql.text) for sql in self.sql_texts()})
