"""Arrow columns as JSON values for the code of users.

Decimals, times, intervals and binary (base64) are text, and a map is an object. JSON has no number
for NaN and infinity: these are text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.json_text import parsed_value
from penstock.sdk.columns.scalar_parsing import NOT_FINITE
from penstock.sdk.columns.text_output import to_text
from penstock.sdk.columns.type_names import is_list

SAFE = 2**53 - 1
"""The largest integer up to which all integers are doubles of their own."""


_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass
class Cells:
    """A conversion of columns. With `texts` integers beyond `SAFE` are text."""

    texts: bool
    _special: bool = field(default=False, init=False)

    def column(self, array: pa.Array) -> list[Any]:
        """Returns the values of a column. JSON text stays text."""
        self._special = False
        plain = rebuild(array, _plain_type(array.type), self._leaf)
        values = _python_values(plain)
        return [self._named(value) for value in values] if self._special else values

    def rows(self, batch: pa.RecordBatch) -> list[str]:
        """Returns the JSON text of each row, with JSON text as its value."""
        columns = [
            [_parsed(value, field) for value in self.column(column)]
            for column, field in zip(batch.columns, batch.schema, strict=True)
        ]
        names = batch.schema.names
        return [
            _encode(dict(zip(names, row, strict=True)))
            for row in (zip(*columns, strict=True) if columns else [()] * batch.num_rows)
        ]

    def _leaf(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        if pa.types.is_floating(array.type):
            self._special |= pc.all(pc.is_finite(array)).as_py() is False
        elif self.texts and pa.types.is_integer(array.type) and array.type.bit_width == 64:
            bounds = pc.min_max(array)
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            self._special |= low is not None and (low < -SAFE or high > SAFE)
        return to_text(array, type_, "iso")

    def _named(self, value: Any) -> Any:
        """Returns a value with text in place of numbers that the code would not receive exactly."""
        if isinstance(value, dict):
            return {key: self._named(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._named(item) for item in value]
        if isinstance(value, float):
            return NOT_FINITE.get(repr(value), value)
        is_wide = self.texts and type(value) is int and abs(value) > SAFE
        return str(value) if is_wide else value


def _python_values(array: pa.Array) -> list[Any]:
    """Returns the values of an array, for many types faster than `to_pylist`."""
    type_ = array.type
    if pa.types.is_list(type_):
        items = _python_values(array.flatten())
        stops = list(accumulate(pc.fill_null(pc.list_value_length(array), 0).to_pylist()))
        lists = [items[start:stop] for start, stop in pairwise([0, *stops])]
        if not array.null_count:
            return lists
        valid = array.is_valid().to_pylist()
        return [each if is_valid else None for each, is_valid in zip(lists, valid, strict=True)]
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if pa.types.is_string(type_) or (is_number and not array.null_count):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    return list(array.to_pylist(maps_as_pydicts="strict"))


def _parsed(value: Any, field: pa.Field) -> Any:
    return parsed_value(value, field) if value is not None else None


def kind(field: pa.Field) -> Any:
    """Returns how a script decodes a value: a name, a list of the item, or a dictionary.

    `""` stands for values that need no decoding. The key `*` of a dictionary is that of a map.
    """
    type_ = field.type
    if is_json(field):
        return "json"
    if pa.types.is_struct(type_):
        kinds = {inner.name: kind(inner) for inner in type_}
        return {name: inner for name, inner in kinds.items() if inner} or ""
    if is_list(type_):
        return [inner] if (inner := kind(type_.value_field)) else ""
    if pa.types.is_map(type_):
        return {"*": inner} if (inner := kind(type_.item_field)) else ""
    for accepts, name in _KINDS:
        if accepts(type_):
            return name
    return ""


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_floating, "float"),
    (pa.types.is_int64, "integer"),
    (pa.types.is_uint64, "integer"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """Returns the type of values that JSON has."""
    if pa.types.is_struct(type_):
        return pa.struct([inner.with_type(_plain_type(inner.type)) for inner in type_])
    if is_list(type_):
        return pa.list_(type_.value_field.with_type(_plain_type(type_.value_type)))
    if pa.types.is_map(type_):
        item = type_.item_field.with_type(_plain_type(type_.item_type))
        return pa.map_(pa.field("key", pa.string(), nullable=False), item)
    is_plain = (
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)
        or pa.types.is_null(type_)
    )  # fmt: skip
    return type_ if is_plain else pa.string()
