"""Inference of types from sample values."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.sdk.columns.conform import is_list
from penstock.sdk.columns.times import UTC, parse_timestamps

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")


def infer_text_type(text: str) -> pa.DataType:
    """Returns TIMESTAMP, DATE or STRING for a text."""
    if not (_DATE.match(text) or _TIME.match(text)):
        return pa.string()
    kind = pa.date32() if _DATE.match(text) else UTC
    try:
        parse_timestamps(pa.array([text]), UTC)
    except pa.ArrowInvalid:
        return pa.string()
    return kind


def merge_types(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Returns a type for values of both types; STRING if there is no other."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    pair = {left, right} if not (pa.types.is_nested(left) or pa.types.is_nested(right)) else set()
    if pair == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pair == {pa.date32(), UTC}:
        return UTC
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return _merge_structs(left, right)
    if is_list(left) and is_list(right):
        return pa.list_(pa.field("element", merge_types(left.value_type, right.value_type)))
    return pa.string()


def _merge_structs(left: pa.StructType, right: pa.StructType) -> pa.StructType:
    types = {field.name: field.type for field in left}
    for field in right:
        known = types.get(field.name, pa.null())
        types[field.name] = merge_types(known, field.type)
    return pa.struct([pa.field(name, type_) for name, type_ in types.items()])
