"""Hashes of rows and of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import (
    array_sort,
    lit,
    map_entries,
    pmod,
    schema_of_variant,
    size,
    to_json,
    transform,
    xxhash64,
)
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from penstock.engine.catalyst.java_names import java_names
from penstock.engine.catalyst.logical_plans import Catalyst

_SEED = 7


def hashes(values: Sequence[Column], types: Sequence[DataType]) -> tuple[Column, Column]:
    """Returns two independent hashes of a row, whose values have these types.

    Values that Spark groups together have the same hashes. Spark's hash omits nulls and the limits
    of nested values: without the positions of nulls, (null, 1) and (1, null) would have the same
    hash, and without a hash of each nested value, [1, 2] beside [3] and [1] beside [2, 3].
    """
    one, other = (
        [
            *(_digest(value, type_, seed) for value, type_ in zip(values, types, strict=True)),
            *(value.isNull() for value in values),
        ]
        for seed in (0, _SEED)
    )
    return xxhash64(*(one or [lit(0)])), xxhash64(lit(_SEED), *other)


def bucket_of(catalyst: Catalyst, key: Sequence[Any], buckets: int) -> Column:
    """Returns the bucket of a key, which consists of these expressions."""
    values = [catalyst.column(expression) for expression in key]
    return pmod(hashes(values, catalyst.types(key))[0], lit(buckets))


def _digest(value: Column, type_: DataType, seed: int) -> Column:
    """Returns a value of an atomic type, or a hash of a value of another type."""
    if isinstance(type_, StructType):
        fields = [(value.getField(f.name), f.dataType) for f in type_.fields]
        return _hash_of(fields, seed)
    if isinstance(type_, ArrayType):
        element = type_.elementType
        items = transform(value, lambda item: _hash_of([(item, element)], seed))
        return xxhash64(lit(seed), size(value), items)
    if isinstance(type_, MapType):
        key, item = type_.keyType, type_.valueType
        entries = transform(
            map_entries(value),
            lambda entry: _hash_of([(entry["key"], key), (entry["value"], item)], seed),
        )
        # Maps with the same entries in another order are equal.
        return xxhash64(lit(seed), size(value), array_sort(entries))
    if isinstance(type_, VariantType):
        return xxhash64(lit(seed), to_json(value), schema_of_variant(value))
    if isinstance(type_, StringType) and not type_.isUTF8BinaryCollation():
        return _collation_key(value)
    return value


def _collation_key(value: Column) -> Column:
    """Returns bytes that are the same for strings that are equal by their collation."""
    java: Any = java_names(SparkSession.active())
    utils = java.org.apache.spark.sql.classic.ExpressionUtils
    java_column: Any = value._jc
    key = java.org.apache.spark.sql.catalyst.expressions.CollationKey
    return Column(utils.column(key(utils.expression(java_column))))


def _hash_of(values: Sequence[tuple[Column, DataType]], seed: int) -> Column:
    digests = [_digest(value, type_, seed) for value, type_ in values]
    return xxhash64(lit(seed), *digests, *(value.isNull() for value, _ in values))
