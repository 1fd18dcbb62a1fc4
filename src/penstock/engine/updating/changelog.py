"""Changes with operations and changes with weights."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import (
    abs as absolute,
)
from pyspark.sql.functions import (
    array_repeat,
    count_if,
    explode,
    first,
    lit,
    row_number,
    struct,
    when,
)
from pyspark.sql.functions import sum as total

from penstock.engine.catalyst.logical_plans import named
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import HASH_1, HASH_2, WEIGHT
from penstock.sdk import Operation
from penstock.sdk.operations import OPERATION_COLUMN

_ROW, _RANK, _REMOVED, _ADDED, _TIMES = (
    f"_penstock_{name}" for name in ("row", "rank", "removed", "added", "times")
)


def to_weighted_rows(rows: DataFrame, operation: str | None) -> DataFrame:
    """Returns rows with `WEIGHT` as the last column, in place of their operation.

    Without `operation` all rows are added.
    """
    if operation is None:
        return rows.withColumn(WEIGHT, lit(1))
    added = named(operation).isin(Operation.INSERT.value, Operation.UPDATE.value)
    return rows.withColumn(WEIGHT, when(added, lit(1)).otherwise(lit(-1))).drop(operation)


def as_inserts(rows: DataFrame, operation: str | None) -> DataFrame:
    """Returns rows as inserts, with the operation as the last column."""
    return rows.withColumn(operation or OPERATION_COLUMN, lit(Operation.INSERT.value))


def to_changes(rows: DataFrame, primary_key: Sequence[str], operation: str) -> DataFrame:
    """Returns weighted rows as changes, with the operation as the last column.

    A row that is added and retracted is no change. With a primary key, a row that is retracted
    and one with the same key that is added are an update: `ub` and `u`, one after the other in a
    partition.
    """
    rows = _consolidate(rows)
    values = [name for name in rows.columns if name != WEIGHT]
    removed = named(WEIGHT) < 0
    keys = [named(name) for name in primary_key if name in values]
    if not keys:
        code = when(removed, Operation.DELETE.value).otherwise(Operation.INSERT.value)
        return rows.sortWithinPartitions(~removed).select(
            *map(named, values), code.alias(operation)
        )
    group = Window.partitionBy(*keys)
    order = Window.partitionBy(*keys).orderBy(~removed, _hashes(rows)[0])
    ranked = rows.select(
        "*",
        row_number().over(order).alias(_RANK),
        count_if(removed).over(group).alias(_REMOVED),
        count_if(~removed).over(group).alias(_ADDED),
    )
    ranked = ranked.sortWithinPartitions(*keys, _RANK)
    return ranked.select(*map(named, values), _operation(removed).alias(operation))


def _operation(removed: Column) -> Column:
    rank, before, after = named(_RANK), named(_REMOVED), named(_ADDED)
    return (
        when(removed & (rank == before) & (after > 0), Operation.UPDATE_BEFORE.value)
        .when(removed, Operation.DELETE.value)
        .when((rank == before + 1) & (before > 0), Operation.UPDATE.value)
        .otherwise(Operation.INSERT.value)
    )


def _hashes(rows: DataFrame) -> tuple[Column, Column]:
    """Returns the hashes of weighted rows, without their weight."""
    fields = [field for field in rows.schema.fields if field.name != WEIGHT]
    return hashes([named(field.name) for field in fields], [field.dataType for field in fields])


def _consolidate(rows: DataFrame) -> DataFrame:
    """Returns each row as often as it is added, or retracted, in all."""
    values = [named(name) for name in rows.columns if name != WEIGHT]
    one, other = _hashes(rows)
    groups = (
        rows.select(
            one.alias(HASH_1),
            other.alias(HASH_2),
            struct(*values).alias(_ROW),
            WEIGHT,
        )
        .groupBy(HASH_1, HASH_2)
        .agg(first(_ROW).alias(_ROW), total(WEIGHT).alias(WEIGHT))
        .where(named(WEIGHT) != 0)
    )
    repeated = array_repeat(lit(0), absolute(named(WEIGHT)).cast("int"))
    return groups.select(f"{_ROW}.*", WEIGHT, explode(repeated).alias(_TIMES)).drop(_TIMES)
