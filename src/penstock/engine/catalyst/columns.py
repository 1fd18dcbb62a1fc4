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

from penstock.sdk.columns.json_mark import has_json, is_json, json_field


def to_spark(schema: pa.Schema) -> StructType:
    """Converts an Arrow schema to Spark; timestamps without a zone become TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def to_arrow(columns: StructType) -> pa.Schema:
    """Returns the Arrow schema in which Spark and Python exchange these columns."""
    schema: pa.Schema = to_arrow_schema(columns, timezone="UTC")
    return schema


def variant_columns(schema: pa.Schema) -> StructType:
    """Returns the columns in Spark of an Arrow schema, with VARIANT in place of JSON text."""
    spark = to_spark(schema)
    fields = zip(schema, spark, strict=True)
    return StructType([_variant_field(field, column) for field, column in fields])


def _variant_field(field: pa.Field, column: StructField) -> StructField:
    return StructField(column.name, _variant_type(field, column.dataType), column.nullable)


def _variant_type(field: pa.Field, type_: DataType) -> DataType:
    if is_json(field):
        return VariantType()
    if not has_json(field):
        return type_
    if isinstance(type_, StructType):
        fields = zip(field.type, type_, strict=True)
        return StructType([_variant_field(inner, column) for inner, column in fields])
    if isinstance(type_, ArrayType):
        return ArrayType(_variant_type(field.type.value_field, type_.elementType))
    assert isinstance(type_, MapType)
    return MapType(type_.keyType, _variant_type(field.type.item_field, type_.valueType))


def exchange_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema in which Spark and Python exchange rows, with JSON text for VARIANT."""
    return mark_json(to_arrow(to_spark(schema)), variant_columns(schema))


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
