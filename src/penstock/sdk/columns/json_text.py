"""Columns of JSON text: STRING columns whose values are JSON, as VARIANT columns become."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conform import is_list, rebuild
from penstock.sdk.columns.row_json import key_text

_MARK = {b"penstock.json": b"true"}


def json_field(field: pa.Field) -> pa.Field:
    """Returns a STRING field whose values are JSON text."""
    return pa.field(field.name, pa.string(), field.nullable, {**(field.metadata or {}), **_MARK})


def is_json(field: pa.Field) -> bool:
    """Returns whether the values of a field are JSON text."""
    return bool(field.metadata) and _MARK.items() <= field.metadata.items()


def parsed_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Returns rows as Python values, with JSON text as its values and a map as a dictionary."""
    return [
        {field.name: _parsed(row[field.name], field) for field in table.schema}
        for row in table.to_pylist(maps_as_pydicts="strict")
    ]


def _parsed(value: Any, field: pa.Field) -> Any:
    if value is None:
        return None
    if is_json(field):
        return json.loads(value)
    if pa.types.is_struct(field.type):
        return {inner.name: _parsed(value[inner.name], inner) for inner in field.type}
    if is_list(field.type):
        return [_parsed(item, field.type.value_field) for item in value]
    if pa.types.is_map(field.type):
        items = field.type.item_field
        return {key_text(key): _parsed(item, items) for key, item in value.items()}
    return value


class Embedding:
    """JSON text that is embedded in JSON: placeholders that are replaced by the text."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._nonce = secrets.token_hex(12)

    def with_placeholders(self, array: pa.Array, field: pa.Field) -> pa.Array:
        """Returns an array with a placeholder for each JSON text."""
        target = _large_json(field)
        return array if target == array.type else rebuild(array, target, self._leaf)

    def _leaf(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        if array.type == type_ or not pa.types.is_large_string(type_):
            return array
        placeholders = []
        for text in array.to_pylist():
            placeholders.append(None if text is None else f"{self._nonce}:{len(self._texts)}")
            if text is not None:
                self._texts.append(text.encode())
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
