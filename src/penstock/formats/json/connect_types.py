"""Logical types of Kafka Connect and Debezium: times, dates and decimals as numbers and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.json.decimals import decode, read_decimals
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.decimal_arrays import decimal_array
from penstock.sdk.columns.scalar_parsing import Times
from penstock.sdk.columns.type_names import is_list

Schema = Mapping[str, Any]
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
TIME_UNITS = {
    f"{_CONNECT}Timestamp": "millis",
    f"{_DEBEZIUM}Timestamp": "millis",
    f"{_DEBEZIUM}MicroTimestamp": "micros",
    f"{_DEBEZIUM}NanoTimestamp": "nanos",
}
"""The units of times since 1970, by logical type."""
DATES = frozenset({f"{_CONNECT}Date", f"{_DEBEZIUM}Date"})
"""Logical types of days since 1970."""
_DECIMAL = f"{_CONNECT}Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_ZONED = f"{_DEBEZIUM}ZonedTimestamp"
_ARROW_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_LEAVES = {
    "boolean": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(),
    "int64": pa.int64(), "float": pa.float32(), "double": pa.float64(), "bytes": pa.binary(),
    "string": pa.string(),
}  # fmt: skip
_UTC = pa.timestamp("us", "UTC")
_MAX_PRECISION = 38


def columns_of(schema: Schema) -> pa.Schema:
    """Returns the columns of a struct. Raises KeyError or TypeError for another schema."""
    return pa.schema(list(_arrow_type(schema)))


def _arrow_type(schema: Schema) -> pa.DataType:
    kind, name = schema["type"], schema.get("name")
    if name in TIME_UNITS or name == _ZONED:
        return _UTC
    if name in DATES:
        return pa.date32()
    if name == _DECIMAL:
        return pa.decimal128(_precision(schema), _scale(schema))
    if name == _VARIABLE_DECIMAL:
        return pa.string()
    if kind == "struct":
        fields = schema["fields"]
        return pa.struct([pa.field(each["field"], _arrow_type(each)) for each in fields])
    if kind == "array":
        return pa.list_(pa.field("element", _arrow_type(schema["items"])))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(schema["values"]))
    return _LEAVES[kind]


def _precision(schema: Schema) -> int:
    precision = int((schema.get("parameters") or {}).get("connect.decimal.precision", 0))
    return min(precision or _MAX_PRECISION, _MAX_PRECISION)


def _scale(schema: Schema) -> int:
    return int((schema.get("parameters") or {}).get("scale", 0))


@dataclass(frozen=True)
class SchemaValues:
    """The conversion of the values of a schema to columns.

    Values are read as `physical` columns: numbers of times, and texts of bytes. They are then
    `logical` values, in the units and scales of the schema.
    """

    columns: pa.Schema
    physical: pa.Schema
    logical: pa.Schema
    conversion: Conversion

    @classmethod
    def create(cls, schema: Schema, columns: pa.Schema, conversion: Conversion) -> SchemaValues:
        """Returns the conversion to columns.

        Raises DecodeError if a time has another unit than the option `timestamps`, which `iso` does
        not set.
        """
        physical, logical, times = [], [], conversion.form.times
        by_name = {each.get("field"): each for each in schema.get("fields") or ()}
        for field in columns:
            read, value = _types(field.type, by_name.get(field.name), times, field.name)
            physical.append(field.with_type(read))
            logical.append(field.with_type(value))
        return cls(columns, pa.schema(physical), pa.schema(logical), conversion)

    def convert(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns `physical` rows as rows of `columns`. Raises ArrowInvalid or ValueError."""
        if self.physical.equals(self.columns):
            return rows
        return conform(conform(rows, self.logical, _logical_values), self.columns, self.conversion)


def _types(
    type_: pa.DataType, schema: Schema | None, times: Times, path: str
) -> tuple[pa.DataType, pa.DataType]:
    """Returns the types in which values of a column are read, and which they then have."""
    if schema is None:
        return type_, type_
    name = schema.get("name")
    is_time = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    if is_time and name in TIME_UNITS:
        unit = TIME_UNITS[name]
        if times not in ("iso", unit):
            raise DecodeError(
                f'column "{path}" has {unit} ({name}), not {times}', code="wrong-unit",
                hint="Remove the option timestamps: the schema of the records has the units.",
            )  # fmt: skip
        return pa.int64(), pa.timestamp(_ARROW_UNITS[unit], "UTC")
    if is_time and name in DATES:
        return pa.int32(), pa.date32()
    if pa.types.is_decimal(type_) and name == _DECIMAL:
        return pa.string(), pa.decimal128(_MAX_PRECISION, _scale(schema))
    if pa.types.is_decimal(type_) and name == _VARIABLE_DECIMAL:
        return pa.struct([("scale", pa.int32()), ("value", pa.string())]), type_
    return _nested_types(type_, schema, times, path)


def _nested_types(
    type_: pa.DataType, schema: Schema, times: Times, path: str
) -> tuple[pa.DataType, pa.DataType]:
    if pa.types.is_struct(type_) and schema.get("fields"):
        by_name = {each.get("field"): each for each in schema["fields"]}
        pairs = [
            _types(field.type, by_name.get(field.name), times, f"{path}.{field.name}")
            for field in type_
        ]
        both = zip(*pairs, strict=True) if pairs else ((), ())
        read, value = (
            pa.struct([field.with_type(each) for field, each in zip(type_, types, strict=True)])
            for types in both
        )
        return read, value
    if is_list(type_):
        read, value = _types(type_.value_type, schema.get("items"), times, path)
        item = type_.value_field
        return pa.list_(item.with_type(read)), pa.list_(item.with_type(value))
    if pa.types.is_map(type_):
        read, value = _types(type_.item_type, schema.get("values"), times, path)
        keys, item = type_.key_field, type_.item_field
        return pa.map_(keys, item.with_type(read)), pa.map_(keys, item.with_type(value))
    return type_, type_


def _logical_values(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if array.type == type_:
        return array
    if pa.types.is_struct(array.type):
        return decimal_array(map(_variable_decimal, array.to_pylist()), type_)
    if pa.types.is_decimal(type_):
        return read_decimals(array, type_)
    if pa.types.is_date(type_):
        return array.cast(pa.int32()).view(type_)
    return array.cast(pa.int64()).view(type_)


def _variable_decimal(value: dict[str, Any] | None) -> Decimal | None:
    if value is None or value["value"] is None:
        return None
    return decode(value["value"], value["scale"] or 0)
