"""Texts of Arrow values for people: nested values as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable

import pyarrow as pa

from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.scalar_parsing import NOT_FINITE
from penstock.sdk.columns.times import duration_text, has_iso_text, iso_scalar_text
from penstock.sdk.columns.type_names import is_list


def json_of(value: pa.Scalar, field: pa.Field | None = None) -> str:
    """Returns a value as JSON. Decimals are numbers, maps are objects, binary is base64.

    `field` marks JSON text, also within a nested value.
    """
    type_ = value.type if field is None else field.type
    if not value.is_valid:
        return "null"
    if pa.types.is_struct(type_):
        return _object((inner.name, json_of(value[inner.name], inner)) for inner in type_)
    if pa.types.is_map(type_):
        items = type_.item_field
        return _object(
            (leaf_text(entry["key"]), json_of(entry["value"], items)) for entry in value.values
        )
    if is_list(type_):
        items = type_.value_field
        return f"[{', '.join(json_of(item, items) for item in value.values)}]"
    text = leaf_text(value)
    raw = field is not None and is_json(field)
    return text if raw or _is_number(value) or pa.types.is_boolean(type_) else _quoted(text)


def leaf_text(value: pa.Scalar) -> str:
    """Returns the text of a value that is not nested."""
    type_ = value.type
    if pa.types.is_nested(type_):
        return json_of(value)
    if pa.types.is_boolean(type_):
        return "true" if value.as_py() else "false"
    if pa.types.is_floating(type_):
        return _float_text(value)
    if pa.types.is_decimal(type_):
        return format(value.as_py(), "f")
    if pa.types.is_duration(type_):
        return str(duration_text(pa.repeat(value, 1))[0].as_py())
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return base64.b64encode(value.as_py()).decode()
    return iso_scalar_text(value) if has_iso_text(type_) else str(value.as_py())


def _float_text(value: pa.Scalar) -> str:
    number = value.as_py()
    if not math.isfinite(number):
        return NOT_FINITE[repr(number)]
    return repr(number) if pa.types.is_float64(value.type) else str(value.cast(pa.string()))


def _is_number(value: pa.Scalar) -> bool:
    type_ = value.type
    if pa.types.is_floating(type_):
        return math.isfinite(value.as_py())
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def _object(items: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{_quoted(name)}: {text}" for name, text in items) + "}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
