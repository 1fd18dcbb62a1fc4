"""Changes with operations and changes with weights."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import (
    abs as absolute,
)
from pyspark.sql.functions import (
    array_repeat,
    col,
    count_if,
    explode,
    first,
    lit,
    row_number,
    struct,
    when,
)
from pyspark.sql.functions import sum as total
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from penstock.engine.catalyst.logical_plans import Catalyst, named
from penstock.engine.catalyst.spark_plan import analyzed_plan, scala_items
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import HASH_1, HASH_2, WEIGHT
from penstock.sdk import Operation
from penstock.sdk.operations import OPERATION_COLUMN

_ROW, _RANK, _REMOVED, _ADDED, _TIMES = (
    f"_penstock_{name}" for name in ("row", "rank", "removed", "added", "times")
)
_KEY = "_penstock_key_"
_GROUPED = (
    BinaryType, BooleanType, DateType, DecimalType, IntegralType, StringType, TimestampNTZType,
    TimestampType,
)  # fmt: skip
"""The types of keys whose values are the same in all rows of a group."""


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


def to_inserts(rows: DataFrame, operation: str) -> DataFrame:
    """Returns weighted rows that are all added as `to_changes` does, with the same columns."""
    values = [name for name in rows.columns if name != WEIGHT]
    inserted = lit(Operation.INSERT.value).alias(operation)
    return rows.select(*_nullable(rows, values), inserted)


def _nullable(rows: DataFrame, names: Sequence[str]) -> list[Column]:
    """Returns columns that can be null, in each batch, whether or not Spark knows a value."""
    catalyst, columns = Catalyst(rows.sparkSession), []
    attributes = scala_items(analyzed_plan(rows).output())
    for field, attribute in zip(rows.schema.fields, attributes, strict=True):
        if field.name in names:
            nullable = (
                attribute if field.nullable else catalyst.expressions.KnownNullable(attribute)
            )
            columns.append(catalyst.column(nullable).alias(field.name))
    return columns


def to_changes(rows: DataFrame, primary_key: Sequence[str], operation: str) -> DataFrame:
    """Returns weighted rows as changes, with the operation as the last column.

    A row that is added and retracted is no change. With a primary key, a row that is retracted
    and one with the same key that is added are an update: `ub` and `u`, one after the other in a
    partition.
    """
    values = [name for name in rows.columns if name != WEIGHT]
    present = [name for name in primary_key if name in values]
    rows = _consolidate(rows, present)
    removed = named(WEIGHT) < 0
    keys = [named(name) for name in present]
    if not keys:
        code = when(removed, Operation.DELETE.value).otherwise(Operation.INSERT.value)
        ordered = rows.sortWithinPartitions(~removed)
        return ordered.select(*_nullable(ordered, values), code.alias(operation))
    group = Window.partitionBy(*keys)
    order = Window.partitionBy(*keys).orderBy(~removed, _hashes(rows)[0])
    ranked = rows.select(
        "*",
        row_number().over(order).alias(_RANK),
        count_if(removed).over(group).alias(_REMOVED),
        count_if(~removed).over(group).alias(_ADDED),
    )
    ranked = ranked.sortWithinPartitions(*keys, _RANK)
    return ranked.select(*_nullable(ranked, values), _operation(removed).alias(operation))


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


def _consolidate(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Returns each row as often as it is added, or retracted, in all.

    The rows of a key stay in one partition if they are in one. The values of a group are those of
    its rows only for some types, so other keys are not grouped.
    """
    values = [named(name) for name in rows.columns if name != WEIGHT]
    types = {field.name: field.dataType for field in rows.schema.fields}
    grouped = key if all(isinstance(types[name], _GROUPED) for name in key) else ()
    columns = {name: f"{_KEY}{index}" for index, name in enumerate(grouped)}
    one, other = _hashes(rows)
    groups = (
        rows.select(
            one.alias(HASH_1),
            other.alias(HASH_2),
            struct(*values).alias(_ROW),
            WEIGHT,
            *(named(name).alias(column) for name, column in columns.items()),
        )
        .groupBy(*columns.values(), HASH_1, HASH_2)
        .agg(first(_ROW).alias(_ROW), total(WEIGHT).alias(WEIGHT))
        .where(named(WEIGHT) != 0)
    )
    repeated = array_repeat(lit(0), absolute(named(WEIGHT)).cast("int"))
    row = col(_ROW)
    found = [
        (named(columns[name]) if name in columns else row.getField(name)).alias(name)
        for name in rows.columns
        if name != WEIGHT
    ]
    return groups.select(*found, WEIGHT, explode(repeated).alias(_TIMES)).drop(_TIMES)
