"""Columns of JSON text: STRING columns whose values are JSON, as VARIANT columns become."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.json_mark import has_json, is_json
from penstock.sdk.columns.row_json import key_text
from penstock.sdk.columns.scalar_parsing import exact_double
from penstock.sdk.columns.type_names import is_list

_MAX_DEPTH = 500
_MAX_DIGITS = 900
_MAX_DECIMAL = 38
_LONG_NUMBER = re.compile(rf"[0-9]{{{_MAX_DIGITS}}}")


def parsed_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Returns rows as Python values, with JSON text as its values and a map as a dictionary."""
    return [
        {field.name: _parsed(row[field.name], field) for field in table.schema}
        for row in table.to_pylist(maps_as_pydicts="strict")
    ]


def _parsed(value: Any, field: pa.Field) -> Any:
    if isinstance(value, dict) and pa.types.is_map(field.type):
        items = field.type.item_field
        return {key_text(key): _parsed(item, items) for key, item in value.items()}
    return _converted(value, field, _parsed, json.loads)


def parsed_value(value: Any, field: pa.Field) -> Any:
    """Returns a value of `to_pylist` with JSON text as its value."""
    return _converted(value, field, parsed_value, json.loads) if has_json(field) else value


def text_value(value: Any, field: pa.Field) -> Any:
    """Returns a Python value with JSON text in place of the values of such fields.

    Raises TypeError or ValueError for a value that JSON does not have.
    """
    return _converted(value, field, text_value, _text) if has_json(field) else value


def checked_value(value: Any, field: pa.Field) -> Any:
    """Returns a value of `to_pylist` whose JSON text is valid. Raises ValueError."""
    return _converted(value, field, checked_value, _checked) if has_json(field) else value


def _converted(
    value: Any, field: pa.Field, inner: Callable[[Any, pa.Field], Any], leaf: Callable[[Any], Any]
) -> Any:
    """Converts the JSON texts within a value by `leaf`; `inner` converts values within it."""
    type_ = field.type
    if value is None:
        return None
    if is_json(field):
        return leaf(value)
    if pa.types.is_struct(type_) and isinstance(value, Mapping):
        return {each.name: inner(value.get(each.name), each) for each in type_}
    if is_list(type_) and isinstance(value, list | tuple):
        return [inner(item, type_.value_field) for item in value]
    if pa.types.is_map(type_):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(key, inner(item, type_.item_field)) for key, item in pairs]
    return value


def _text(value: Any) -> str:
    return _checked(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _checked(text: str) -> str:
    check_json(text)
    return text


def check_json(text: str) -> None:
    """Raises ValueError if a text is not the JSON of a VARIANT.

    Repeated keys, more than 500 levels and numbers of more than 900 digits have no VARIANT. Nor
    has a number that is neither a decimal of 38 digits nor a double: Spark would round it.
    """
    try:
        json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse,
            parse_float=_check_number, parse_int=_check_number,
        )  # fmt: skip
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > _MAX_DEPTH and _depth(json.loads(text)) > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if len(text) > _MAX_DIGITS and _LONG_NUMBER.search(text):
        raise ValueError("a number has too many digits")


def _unique(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        repeated = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise ValueError(f'the key "{repeated}" is repeated')


def _check_number(text: str) -> None:
    """Raises ValueError for a number that is neither a DECIMAL of 38 digits nor a double."""
    if len(text) <= _MAX_DECIMAL and "e" not in text and "E" not in text:
        return
    whole, _, fraction = text.removeprefix("-").partition(".")
    digits = whole + fraction
    is_decimal = digits.isdigit() and len(digits.lstrip("0")) <= _MAX_DECIMAL
    if not is_decimal or len(fraction) > _MAX_DECIMAL:
        exact_double(text)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _depth(value: Any) -> int:
    depth, level = 1, [value]
    while level := [
        item
        for each in level
        if isinstance(each, dict | list)
        for item in (each.values() if isinstance(each, dict) else each)
    ]:
        depth += 1
    return depth


class Embedding:
    """JSON text that is embedded in JSON: placeholders that are replaced by the text."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._nonce = secrets.token_hex(12)

    def placeholder(self, text: bytes) -> str:
        """Returns a text whose JSON is replaced by `text`."""
        self._texts.append(text)
        return f"{self._nonce}:{len(self._texts) - 1}"

    def with_placeholders(self, array: pa.Array, field: pa.Field) -> pa.Array:
        """Returns an array with a placeholder for each JSON text."""
        target = _large_json(field)
        return array if target == array.type else rebuild(array, target, self._leaf)

    def _leaf(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        if array.type == type_ or not pa.types.is_large_string(type_):
            return array
        placeholders = [
            None if text is None else self.placeholder(text.encode()) for text in array.to_pylist()
        ]
        return pa.array(placeholders, type_)

    def embed(self, content: bytes) -> bytes:
        """Returns JSON with the texts in place of their placeholders."""
        if not self._texts:
            return content
        pattern = rb'"%b:(\d+)"' % self._nonce.encode()
        return re.sub(pattern, lambda match: self._texts[int(match[1])], content)


def _large_json(field: pa.Field) -> pa.DataType:
    """Returns the type of a field with LARGE_STRING in place of JSON text."""
    if is_json(field):
        return pa.large_string()
    if pa.types.is_struct(field.type):
        return pa.struct([inner.with_type(_large_json(inner)) for inner in field.type])
    if is_list(field.type):
        inner = field.type.value_field
        return pa.list_(inner.with_type(_large_json(inner)))
    if pa.types.is_map(field.type):
        inner = field.type.item_field
        return pa.map_(field.type.key_field, inner.with_type(_large_json(inner)))
    return field.type
