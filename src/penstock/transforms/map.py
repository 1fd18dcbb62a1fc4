"""The transform `map`: adds and replaces columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.core.names import quote_name
from penstock.sdk import Config, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism
from penstock.sql.completeness import selected_times
from penstock.sql.kept_columns import aliased, computed_rows
from penstock.sql.keyed_rows import KeyedRows
from penstock.sql.text.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class MapConfig(Config):
    set: dict[str, str]
    """A map of column to Spark SQL expression.

    All expressions refer to the columns of the input."""


class Map(Relation[MapConfig]):
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

    incremental = True

    def sql_texts(self) -> Sequence[SqlText]:
        return [read_sql_text(("set", name), text) for name, text in self.config.set.items()]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        texts = aliased({str(sql.route[-1]): sql.text for sql in self.sql_texts()})
        names = ", ".join(quote_name(name) for name in self.config.set)
        changed = computed_rows([f"* EXCEPT ({names})", *texts], rows)
        if rows.columns is None:
            return changed
        known = {column.lower() for column in rows.columns}
        added = [name for name in self.config.set if name.lower() not in known]
        return replace(changed, columns=(*rows.columns, *added))

    def time_columns(self, times: Set[str]) -> Set[str]:
        items = [f"{text} AS {quoted(name)}" for name, text in self.config.set.items()]
        replaced = {name.lower() for name in self.config.set}
        kept = {name for name in times if name.lower() not in replaced}
        return kept | selected_times(items, times)

    def deterministic(self) -> bool:
        return determinism.deterministic(
            *self.config.set.values(), functions=self.context.functions
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import expr

        (frame,) = inputs.values()
        return frame.withColumns({str(sql.route[-1]): expr(sql.text) for sql in self.sql_texts()})
