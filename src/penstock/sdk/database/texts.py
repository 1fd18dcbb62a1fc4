"""Rows that a database returns as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.type_names import is_list

Parse = Callable[[str, pa.DataType], Any]


def parse_json(text: str, type_: pa.DataType) -> Any:
    """Parses JSON as the value of a nested type. Numbers are texts. Raises ValueError."""
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)


def rows_of_texts(
    texts: pa.RecordBatch, columns: pa.Schema, conversion: Conversion, parse: Parse = parse_json
) -> pa.RecordBatch:
    """Converts columns of text to `columns`. `parse` parses the text of a value of a nested type.

    Raises ArrowInvalid for a text that is not a value of its column.
    """
    arrays = [
        _nested_texts(texts.column(field.name), field.type, parse)
        if pa.types.is_nested(field.type)
        else texts.column(field.name)
        for field in columns
    ]
    return conform(pa.RecordBatch.from_arrays(arrays, columns.names), columns, conversion)


def _nested_texts(texts: pa.StringArray, type_: pa.DataType, parse: Parse) -> pa.Array:
    """Parses texts as an array of a nested type whose leaves are texts."""
    try:
        values = [None if text is None else parse(text, type_) for text in texts.to_pylist()]
        return pa.array([_with_texts(value, type_) for value in values], _of_texts(type_))
    except (ValueError, TypeError, AttributeError, pa.ArrowException):
        raise pa.ArrowInvalid("the value does not have the structure of the column") from None


def _of_texts(type_: pa.DataType) -> pa.DataType:
    """Returns a nested type with text in place of each leaf."""
    if is_list(type_):
        return pa.list_(_of_texts(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _of_texts(type_.item_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_of_texts(field.type)) for field in type_])
    return pa.string()


def _with_texts(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if is_list(type_):
        if not isinstance(value, list):
            raise TypeError
        return [_with_texts(item, type_.value_type) for item in value]
    if pa.types.is_map(type_):
        return [(key, _with_texts(item, type_.item_type)) for key, item in value.items()]
    if pa.types.is_struct(type_):
        return {field.name: _with_texts(value.get(field.name), field.type) for field in type_}
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
