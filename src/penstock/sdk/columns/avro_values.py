"""Values of Avro as columns, and columns as values of Avro."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.sdk.columns.avro_json import json_text
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.conversion import cast
from penstock.sdk.columns.json_mark import is_json


def to_arrow(values: list[Any], field: pa.Field) -> pa.Array:
    """Converts values that fastavro read with a schema of `without_times`."""
    type_ = field.type
    if pa.types.is_nested(type_) or pa.types.is_string(type_):
        values = [_from_datum(value, field) for value in values]
    return pa.array(values, type_)


def _from_datum(value: Any, field: pa.Field) -> Any:
    type_ = field.type
    if value is None:
        return None
    if is_json(field):
        return json_text(value)
    if pa.types.is_map(type_):
        return [(key, _from_datum(item, type_.item_field)) for key, item in value.items()]
    if pa.types.is_list(type_):
        return [_from_datum(item, type_.value_field) for item in value]
    if pa.types.is_struct(type_):
        return {each.name: _from_datum(value.get(each.name), each) for each in type_}
    if not pa.types.is_string(type_):
        return value
    is_text = field.metadata is None or isinstance(value, str)
    return str(value) if is_text else json_text(value)


def from_arrow(array: pa.Array) -> list[Any]:
    """Converts an array to values that fastavro writes with a schema of `without_times`."""
    numbers = rebuild(array, _number_type(array.type), _as_number)
    values: list[Any] = numbers.to_pylist()
    if not pa.types.is_nested(array.type):
        return values
    return [_to_datum(value, array.type) for value in values]


def _number_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_number_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_number_type(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, type_.item_field.with_type(_number_type(type_.item_type)))
    if pa.types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_


def _as_number(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array.view(type_) if pa.types.is_temporal(array.type) else cast(array, type_)


def _to_datum(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: _to_datum(item, type_.item_type) for key, item in value}
    if pa.types.is_list(type_):
        return [_to_datum(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: _to_datum(value.get(field.name), field.type) for field in type_}
    return value
