"""Types of values found in a sample."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.sdk.kit.columns import is_list
from penstock.sdk.kit.times import UTC, instants

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")


def of_text(text: str) -> pa.DataType:
    """TIMESTAMP, DATE or STRING, whatever a text looks like."""
    if not (_DATE.match(text) or _TIME.match(text)):
        return pa.string()
    kind = pa.date32() if _DATE.match(text) else UTC
    try:
        instants(pa.array([text]), UTC)
    except pa.ArrowInvalid:
        return pa.string()
    return kind


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds values of both; STRING where nothing else does."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    pair = {one, other} if not (pa.types.is_nested(one) or pa.types.is_nested(other)) else set()
    if pair == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pair == {pa.date32(), UTC}:
        return UTC
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _merged_structs(one, other)
    if is_list(one) and is_list(other):
        return pa.list_(pa.field("element", merged(one.value_type, other.value_type)))
    return pa.string()


def _merged_structs(one: pa.StructType, other: pa.StructType) -> pa.StructType:
    types = {field.name: field.type for field in one}
    for field in other:
        known = types.get(field.name, pa.null())
        types[field.name] = merged(known, field.type)
    return pa.struct([pa.field(name, type_) for name, type_ in types.items()])
