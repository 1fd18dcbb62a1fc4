"""Rows with VARIANT columns, which sinks receive as JSON text."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    lit,
    parse_json,
    struct,
    to_json,
    transform,
    transform_values,
    when,
)
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from penstock.core.names import quote_name
from penstock.engine.catalyst.columns import has_variant, mark_json, variant_columns


def variants_to_json(rows: DataFrame) -> DataFrame:
    """Returns rows with JSON text in place of VARIANT."""
    return _replace(rows, rows.schema, to_json)


def head_of(rows: DataFrame, count: int) -> pa.Table:
    """Returns the first rows, with JSON text in place of VARIANT, which is marked as JSON."""
    table = variants_to_json(rows.limit(count)).toArrow()
    return pa.Table.from_arrays(table.columns, schema=mark_json(table.schema, rows.schema))


def mark_variants(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """Returns rows with VARIANT in place of the JSON text that a schema marks."""
    return json_to_variants(rows, variant_columns(schema))


def json_to_variants(rows: DataFrame, columns: StructType) -> DataFrame:
    """Returns rows of `columns`, from rows with JSON text in place of VARIANT."""
    return _replace(rows, columns, parse_json)


def _replace(
    rows: DataFrame, columns: StructType, convert: Callable[[Column], Column]
) -> DataFrame:
    if not has_variant(columns):
        return rows
    return rows.select(
        *(
            _converted(_column(rows, field.name), field.dataType, convert).alias(field.name)
            for field in columns
        )
    )


def _column(rows: DataFrame, name: str) -> Column:
    return rows[quote_name(name)]


def _converted(column: Column, type_: DataType, convert: Callable[[Column], Column]) -> Column:
    if not has_variant(type_):
        return column
    if isinstance(type_, StructType):
        fields = [
            _converted(column.getField(field.name), field.dataType, convert).alias(field.name)
            for field in type_
        ]
        return when(column.isNull(), lit(None)).otherwise(struct(*fields))
    if isinstance(type_, ArrayType):
        element = type_.elementType
        return transform(column, lambda item: _converted(item, element, convert))
    if isinstance(type_, MapType):
        item_type = type_.valueType
        return transform_values(column, lambda _, item: _converted(item, item_type, convert))
    return convert(column)
