"""Conversion of schemas between Arrow and Spark. Sinks receive VARIANT as JSON text."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from penstock.sdk.columns.json_text import json_field


def to_spark(schema: pa.Schema) -> StructType:
    """Converts an Arrow schema to Spark; timestamps without a zone become TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def to_arrow(columns: StructType) -> pa.Schema:
    """Returns the Arrow schema in which Spark and Python exchange these columns."""
    schema: pa.Schema = to_arrow_schema(columns, timezone="UTC")
    return schema


def sink_schema(columns: StructType) -> pa.Schema:
    """Returns the Arrow schema of the rows that a sink receives, with VARIANT as JSON text."""
    return mark_json(to_arrow(text_columns(columns)), columns)


def text_columns(columns: StructType) -> StructType:
    """Returns columns with STRING in place of VARIANT."""
    text = _text_type(columns)
    assert isinstance(text, StructType)
    return text


def _text_type(type_: DataType) -> DataType:
    if isinstance(type_, VariantType):
        return StringType()
    if isinstance(type_, StructType):
        fields = [StructField(f.name, _text_type(f.dataType), f.nullable) for f in type_]
        return StructType(fields) if has_variant(type_) else type_
    if isinstance(type_, ArrayType):
        return ArrayType(_text_type(type_.elementType), type_.containsNull)
    if isinstance(type_, MapType):
        return MapType(type_.keyType, _text_type(type_.valueType), type_.valueContainsNull)
    return type_


def has_variant(type_: DataType) -> bool:
    """Returns whether a type is VARIANT or contains one."""
    if isinstance(type_, StructType):
        return any(has_variant(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return has_variant(type_.elementType)
    if isinstance(type_, MapType):
        return has_variant(type_.valueType)
    return isinstance(type_, VariantType)


def mark_json(schema: pa.Schema, columns: StructType) -> pa.Schema:
    """Returns the schema of rows with JSON text in place of VARIANT, which is marked as JSON."""
    if not has_variant(columns):
        return schema
    types = {field.name: field.dataType for field in columns}
    return pa.schema(
        [_marked(field, types[field.name]) if field.name in types else field for field in schema]
    )


def _marked(field: pa.Field, type_: DataType) -> pa.Field:
    if isinstance(type_, VariantType):
        return json_field(field)
    if isinstance(type_, StructType):
        inner = zip(field.type, type_, strict=True)
        return field.with_type(pa.struct([_marked(item, spark.dataType) for item, spark in inner]))
    if isinstance(type_, ArrayType):
        return field.with_type(pa.list_(_marked(field.type.value_field, type_.elementType)))
    if isinstance(type_, MapType):
        item = _marked(field.type.item_field, type_.valueType)
        return field.with_type(pa.map_(field.type.key_field, item))
    return field
