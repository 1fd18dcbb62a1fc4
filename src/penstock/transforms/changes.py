"""Operations of changes in transforms: filters that delete rows, and projections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sdk import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PASSES = "_penstock_passes"


def filter_changes(frame: DataFrame, condition: str, operation: str) -> DataFrame:
    """Returns the changes of the rows that meet a condition.

    An update or a delete that does not pass is a delete, because the row before may have passed.
    The row of a delete may have only its key.
    """
    from pyspark.sql.functions import coalesce, expr, lit, when

    name = f"`{operation.replace('`', '``')}`"
    frame = frame.withColumn(_PASSES, coalesce(expr(condition), lit(False)))
    changed = frame[name].isin(Operation.UPDATE.value, Operation.DELETE.value)
    kept = frame.where(frame[_PASSES] | changed)
    value = when(kept[_PASSES], kept[name]).otherwise(lit(Operation.DELETE.value))
    return kept.withColumn(operation, value).drop(_PASSES)
