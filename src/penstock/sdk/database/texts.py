"""Rows that a database returns as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conform import WrongType, conform, rebuild
from penstock.sdk.columns.conversion import Conversion, TextConversion
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.type_names import is_list

Parse = Callable[[str, pa.DataType], Any]


class JsonText(str):
    """A text that is JSON: a number with all its digits, or a value within an array of JSON."""

    __slots__ = ()


def parse_json(text: str, type_: pa.DataType) -> Any:
    """Parses JSON as the value of a nested type. Numbers are JsonText. Raises ValueError."""
    return json.loads(text, parse_float=JsonText, parse_int=JsonText, parse_constant=JsonText)


def rows_of_texts(
    texts: pa.RecordBatch, columns: pa.Schema, conversion: Conversion, parse: Parse = parse_json
) -> pa.RecordBatch:
    """Converts columns of text to `columns`. `parse` parses the text of a value of a nested type.

    Raises ArrowInvalid for a text that is not a value of its column.
    """
    arrays = [
        _nested_texts(texts.column(field.name).to_pylist(), field, parse)
        if pa.types.is_nested(field.type)
        else texts.column(field.name)
        for field in columns
    ]
    return conform(pa.RecordBatch.from_arrays(arrays, columns.names), columns, conversion)


def nested_column(texts: Sequence[str | bytes | None], field: pa.Field) -> pa.Array:
    """Converts JSON to the nested type of a field. Raises ArrowInvalid for another value."""
    try:
        return rebuild(_nested_texts(texts, field, parse_json), field.type, TextConversion())
    except WrongType as error:
        raise error.within(field.name) from None


def _nested_texts(texts: Sequence[Any], field: pa.Field, parse: Parse) -> pa.Array:
    """Parses texts as an array of a nested type whose leaves are texts."""
    try:
        values = [None if text is None else parse(text, field.type) for text in texts]
        return pa.array([_with_texts(value, field) for value in values], _of_texts(field.type))
    except (ValueError, TypeError, AttributeError, pa.ArrowException):
        raise pa.ArrowInvalid(
            f'column "{field.name}": the value does not have the structure of the column'
        ) from None


def _of_texts(type_: pa.DataType) -> pa.DataType:
    """Returns a nested type with text in place of each leaf."""
    if is_list(type_):
        return pa.list_(_of_texts(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _of_texts(type_.item_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_of_texts(field.type)) for field in type_])
    return pa.string()


def _with_texts(value: Any, field: pa.Field) -> Any:
    type_ = field.type
    if value is None:
        return None
    if is_list(type_):
        if not isinstance(value, list):
            raise TypeError
        return [_with_texts(item, type_.value_field) for item in value]
    if pa.types.is_map(type_):
        return [(key, _with_texts(item, type_.item_field)) for key, item in value.items()]
    if pa.types.is_struct(type_):
        return {inner.name: _with_texts(value.get(inner.name), inner) for inner in type_}
    return str(value) if isinstance(value, str) and not is_json(field) else _json_text(value)


def _json_text(value: Any) -> str:
    """Returns the JSON of a value of `parse_json`."""
    if isinstance(value, JsonText):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_json_text, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_json_text(key)}: {_json_text(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)
