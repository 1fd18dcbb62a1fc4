"""The transform `filter`: keeps the rows that meet a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Operation, Relation
from penstock.sdk.sql_text import SqlText, read_sql_text
from penstock.sql import determinism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PASSES = "_penstock_passes"


class FilterConfig(Config):
    where: str
    """A Spark SQL condition over the columns of the input."""


class Filter(DataFrameTransform[FilterConfig]):
    """Keeps the rows for which a condition is true; null drops the row.

    Parallel by partition. Of changes, an update whose new row does not pass becomes a delete.

    ```yaml
    type: filter
    from: flights
    where: dep_delay > 60 AND origin = 'JFK'
    ```
    """

    def sql_texts(self) -> Sequence[SqlText]:
        return [read_sql_text(("where",), self.config.where)]

    def relation(self) -> Relation:
        where = self.config.where
        return Relation(
            deterministic=determinism.deterministic(where, functions=self.context.functions),
            filters_by_chance=determinism.has_chance(where),
            incremental=True,
        )

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        (condition,) = self.sql_texts()
        if self.changes is None:
            return frame.where(condition.text)
        timeless = determinism.deterministic(condition.text)
        if self.changes.complete and timeless:
            return frame.where(condition.text)
        return filter_changes(frame, condition.text, self.changes.column, timeless=timeless)


def filter_changes(
    frame: DataFrame, condition: str, operation: str, *, timeless: bool
) -> DataFrame:
    """Returns the changes of the rows that meet a condition.

    An update or a delete that does not pass is a delete, because the row before may have passed.
    The row of a delete may have only its key. Unless the condition is `timeless`, the row before an
    update may have passed as well.
    """
    from pyspark.sql.functions import coalesce, expr, lit, when

    name = quote_name(operation)
    frame = frame.withColumn(_PASSES, coalesce(expr(condition), lit(False)))
    before = [] if timeless else [Operation.UPDATE_BEFORE.value]
    deleted = [*before, Operation.UPDATE.value, Operation.DELETE.value]
    dropped = [code.value for code in Operation if code.value not in deleted]
    # A row with an unknown operation becomes a dead letter downstream.
    is_kept = frame[_PASSES] | ~coalesce(frame[name].isin(dropped), lit(False))
    kept = frame.where(is_kept)
    is_deleted = ~kept[_PASSES] & kept[name].isin(deleted)
    value = when(is_deleted, lit(Operation.DELETE.value)).otherwise(kept[name])
    return kept.withColumn(operation, value).drop(_PASSES)
