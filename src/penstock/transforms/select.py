"""The transform `select`: computes the columns of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism
from penstock.sql.column_lineage import SelectedColumns
from penstock.sql.primary_keys import aliased

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SelectConfig(Config):
    columns: list[str] | dict[str, str]
    """A list of columns and expressions (`price * 2 AS double_price`), or a map of new column to
    Spark SQL expression."""


class Select(DataFrameTransform[SelectConfig]):
    """Selects columns and expressions; the output has no other columns.

    Parallel by partition. The operation column of changes is kept.

    ```yaml
    type: select
    from: flights
    columns:
      flight: carrier || flight
      late: dep_delay > 60
    ```
    """

    def sql_texts(self) -> Sequence[SqlText]:
        columns = self.config.columns
        items = enumerate(columns) if isinstance(columns, list) else columns.items()
        return [read_sql_text(("columns", key), text) for key, text in items]

    def relation(self) -> Relation:
        columns = self.config.columns
        written = columns if isinstance(columns, list) else columns.values()
        translated = self._translated_columns()
        items = translated if isinstance(translated, list) else aliased(translated)
        return Relation(
            deterministic=determinism.deterministic(*written, functions=self.context.functions),
            incremental=True,
            lineage=SelectedColumns(tuple(items)),
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        columns = self._translated_columns()
        selected = _select(frame, columns)
        if self.changes is None or self.changes.column in selected.columns:
            return selected
        operation = self.changes.column
        name = quote_name(operation)
        kept = [*columns, name] if isinstance(columns, list) else {**columns, operation: name}
        return _select(frame, kept)

    def _translated_columns(self) -> list[str] | dict[str, str]:
        """Returns the columns in Spark SQL."""
        texts = self.sql_texts()
        if isinstance(self.config.columns, list):
            return [sql.text for sql in texts]
        return {str(sql.route[-1]): sql.text for sql in texts}


def _select(frame: DataFrame, columns: list[str] | dict[str, str]) -> DataFrame:
    if isinstance(columns, list):
        return frame.selectExpr(*columns)
    from pyspark.sql.functions import expr

    return frame.select(*(expr(text).alias(name) for name, text in columns.items()))
