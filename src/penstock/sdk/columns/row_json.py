"""JSON text of rows, readable by the json format."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.json_mark import has_json, is_json
from penstock.sdk.columns.scalar_parsing import NOT_FINITE
from penstock.sdk.columns.times import has_iso_text, iso_python_text, iso_scalar_text


def row_payload(batch: pa.RecordBatch, index: int) -> bytes:
    """Returns a row as JSON: times as ISO 8601 in UTC, binary as base64, decimals as text.

    A column of JSON text is its value, if the text is valid. A byte that is not UTF-8 is the escape
    of a lone surrogate, `\\udcff` for 0xff (see `sdk.columns.escaped_bytes`).
    """
    row = {
        field.name: _value(column[index], field)
        for field, column in zip(batch.schema, batch.columns, strict=True)
    }
    return row_text(row).encode(errors="backslashreplace")


def _json_value(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


def _value(value: pa.Scalar, field: pa.Field) -> Any:
    """Returns the Python value of an Arrow value: maps as dictionaries with keys of text.

    JSON text is its value, also within a nested value. Times out of Python's range are text.
    """
    type_ = field.type
    if not value.is_valid:
        return None
    if is_json(field):
        return _json_value(_text(value))
    if not _has_map(type_) and not has_json(field):
        with suppress(ValueError, OverflowError):
            return value.as_py()
    if pa.types.is_struct(type_):
        return {inner.name: _value(value[inner.name], inner) for inner in type_}
    if pa.types.is_map(type_):
        return {
            key_text(_value(entry["key"], type_.key_field)): _value(
                entry["value"], type_.item_field
            )
            for entry in value.values
        }
    if pa.types.is_nested(type_):
        return [_value(item, type_.value_field) for item in value.values]
    if pa.types.is_string(type_):
        return _text(value)
    return iso_scalar_text(value) if has_iso_text(type_) else str(value.cast(pa.string()))


def _text(value: pa.Scalar) -> str:
    return bytes(value.as_buffer()).decode(errors="surrogateescape")


def _has_map(type_: pa.DataType) -> bool:
    return pa.types.is_map(type_) or any(
        _has_map(type_.field(index).type) for index in range(type_.num_fields)
    )


def key_text(key: Any) -> str:
    """Returns the key of a map as the text of a JSON name."""
    return key if isinstance(key, str) else row_text(key).strip('"')


def row_text(row: Any) -> str:
    """Returns a row of Python values as one line of JSON. NaN and infinity are texts."""
    try:
        return _dumps(row)
    except ValueError:
        return _dumps(_with_float_names(row))


def _dumps(row: Any) -> str:
    return json.dumps(row, default=_to_jsonable, ensure_ascii=False, allow_nan=False)


def _with_float_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_float_names(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_float_names(item) for item in value]
    return NOT_FINITE.get(repr(value), value) if isinstance(value, float) else value


def _to_jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        timestamp = value.astimezone(UTC) if value.tzinfo else value
        return iso_python_text(timestamp).replace("+00:00", "Z")
    if isinstance(value, time):
        return iso_python_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
