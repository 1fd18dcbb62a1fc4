"""Schemas of Kafka Connect, for the JSON wrapper of `schema` and `payload`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conform import is_list
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.text_values import Times

Schema = dict[str, Any]
_LEAVES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int8"),
    (pa.types.is_int16, "int16"),
    (pa.types.is_int32, "int32"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_decimal, "double"),
    (pa.types.is_binary, "bytes"),
)
"""The types that JSON values of the format `json` have. Other values are text."""


def connect_schema(columns: pa.Schema, times: Times) -> Schema:
    """Returns the schema of an event with these columns."""
    fields = [_named(field, times) for field in columns]
    return {"type": "struct", "optional": False, "fields": fields}


def _named(field: pa.Field, times: Times) -> Schema:
    type_ = {"type": "string"} if is_json(field) else _schema(field.type, times)
    return {**type_, "optional": field.nullable, "field": field.name}


def _schema(type_: pa.DataType, times: Times) -> Schema:
    if pa.types.is_struct(type_):
        return {"type": "struct", "fields": [_named(field, times) for field in type_]}
    if is_list(type_):
        return {"type": "array", "items": {**_schema(type_.value_type, times), "optional": True}}
    if pa.types.is_map(type_):
        values = {**_schema(type_.item_type, times), "optional": True}
        keys = {"type": "string", "optional": False}
        return {"type": "map", "keys": keys, "values": values}
    if pa.types.is_timestamp(type_) and times != "iso":
        return {"type": "int64"}
    return {"type": next((name for test, name in _LEAVES if test(type_)), "string")}
