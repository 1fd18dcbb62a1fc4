"""The mapping of a new index: the types of its fields by the types of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.type_names import is_list

Field = Mapping[str, Any]
_TEXT: Field = {
    "type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}},
}  # fmt: skip
_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean", pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer",
    pa.int64(): "long", pa.uint8(): "short", pa.uint16(): "integer", pa.uint32(): "long",
    pa.uint64(): "unsigned_long", pa.float32(): "float", pa.float64(): "double",
    pa.date32(): "date",
}  # fmt: skip
_DATE_FORMS = ("iso", "millis")


def mapping_of(columns: pa.Schema, times: str, decimals: str) -> Mapping[str, Any]:
    """Returns the mapping for rows of these columns.

    `times` and `decimals` are their forms in JSON. Fields that are no column, such as the keys of a
    MAP, get their type from their first value. Texts are never dates, and floats have 64 bits.
    """
    doubles = {"match_mapping_type": "double", "mapping": {"type": "double"}}
    return {
        "date_detection": False,
        "dynamic_templates": [{"doubles": doubles}],
        "properties": _properties(columns, times, decimals),
    }


def _properties(fields: Iterable[pa.Field], times: str, decimals: str) -> Mapping[str, Any]:
    found = {
        field.name: None if is_json(field) else _field(field.type, times, decimals)
        for field in fields
    }
    return {name: type_ for name, type_ in found.items() if type_ is not None}


def _field(type_: pa.DataType, times: str, decimals: str) -> Field | None:
    """Returns the mapping of a type; None for the type of the first value."""
    if type_ in _NAMES:
        return {"type": _NAMES[type_]}
    if is_list(type_):
        return _field(type_.value_type, times, decimals)
    if pa.types.is_struct(type_):
        return {"properties": _properties(type_, times, decimals)}
    if pa.types.is_map(type_):
        return {"type": "object"}
    if pa.types.is_timestamp(type_):
        return {"type": "date" if times in _DATE_FORMS else "long"}
    if pa.types.is_decimal(type_):
        return {"type": "double" if decimals == "number" else "keyword"}
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return {"type": "binary"}
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _TEXT
    return None
