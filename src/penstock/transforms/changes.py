"""Operations of changes in transforms: filters that delete rows, and projections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.names import quote_name
from penstock.sdk import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PASSES = "_penstock_passes"


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
