"""Conversion and comparison of the values of a test case."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.core.text import did_you_mean, shorten
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.columns.decimal_arrays import decimal_array
from penstock.sdk.columns.type_names import is_list, sql_name, with_article
from penstock.spec.source_map import Route

_TOLERANCE = 1e-9


class ConversionError(Exception):
    """A value that cannot be converted. `route` leads to an inner value of the given value."""

    def __init__(self, message: str, route: Route, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.route, self.hint = message, route, hint


def convert_value(value: Any, type_: pa.DataType, route: Route = ()) -> Any:
    """Converts a YAML value to the Python value of an Arrow type. Raises ConversionError.

    Times are ISO 8601, in UTC without an offset. Bytes are text in UTF-8, `{hex: ...}` or
    `{base64: ...}`. Structs and maps are maps. Absent fields of a struct stay absent.
    """
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return _convert_struct(value, type_, route)
    if pa.types.is_map(type_):
        return _convert_map(value, type_, route)
    if is_list(type_):
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise _wrong_type(value, type_, route)
        items = enumerate(value)
        return [convert_value(item, type_.value_type, (*route, index)) for index, item in items]
    return _convert_scalar(value, type_, route)


def matches_value(expected: Any, actual: Any) -> bool:
    """Returns whether a value equals a converted value. Absent fields match anything."""
    if isinstance(expected, float) and isinstance(actual, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        return math.isclose(expected, actual, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(expected, Mapping):
        if isinstance(actual, list):
            return _matches_map(expected, dict(actual))
        return isinstance(actual, Mapping) and all(
            key in actual and matches_value(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(matches_value, expected, actual))
    return bool(expected == actual)


def _matches_map(expected: Mapping[Any, Any], actual: Mapping[Any, Any]) -> bool:
    return expected.keys() == actual.keys() and all(
        matches_value(expected[key], actual[key]) for key in actual
    )


def _convert_struct(value: Any, type_: pa.StructType, route: Route) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong_type(value, type_, route)
    types = {field.name: field.type for field in type_}
    for name in value:
        if name not in types:
            hint = did_you_mean(name, types)
            raise ConversionError(f'there is no field "{name}"', (*route, name), hint)
    return {name: convert_value(item, types[name], (*route, name)) for name, item in value.items()}


def _convert_map(value: Any, type_: pa.MapType, route: Route) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _wrong_type(value, type_, route)
    converted = {}
    for text, item in value.items():
        item_route = (*route, str(text))
        key = convert_value(_convert_key(text, type_.key_type), type_.key_type, item_route)
        converted[key] = convert_value(item, type_.item_type, item_route)
    return converted


def _convert_key(key: str, type_: pa.DataType) -> Any:
    """Converts a key of a YAML map, which is text, to a number if the type is numeric."""
    try:
        if pa.types.is_integer(type_):
            return int(key)
        return float(key) if pa.types.is_floating(type_) else key
    except ValueError:
        return key


def _convert_scalar(value: Any, type_: pa.DataType, route: Route) -> Any:
    try:
        if pa.types.is_binary(type_):
            return _convert_bytes(value)
        if isinstance(value, Mapping | list):
            raise pa.ArrowInvalid
        if pa.types.is_decimal(type_) and not isinstance(value, bool):
            return decimal_array([Decimal(str(value))], type_)[0].as_py()
        if pa.types.is_boolean(type_) != isinstance(value, bool):
            raise pa.ArrowInvalid
        if (pa.types.is_string(type_) or pa.types.is_temporal(type_)) != isinstance(value, str):
            raise pa.ArrowInvalid
        return TextConversion()(pa.array([value]), type_)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ArithmeticError,
            ValueError):  # fmt: skip
        raise _wrong_type(value, type_, route) from None


def _convert_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Mapping) and len(value) == 1:
        ((encoding, text),) = value.items()
        if encoding == "hex":
            return bytes.fromhex(text)
        if encoding == "base64":
            return base64.b64decode(text, validate=True)
    raise ValueError


def _wrong_type(value: Any, type_: pa.DataType, route: Route) -> ConversionError:
    text = json.dumps(value, ensure_ascii=False, default=str)
    hint = None
    if pa.types.is_string(type_) and isinstance(value, int | float):
        hint = f'Quote the value: "{text}".'
    elif pa.types.is_timestamp(type_):
        hint = "Write the time as 2024-05-01T12:00:00Z."
    message = f"expected {with_article(sql_name(type_))}, found {shorten(text, 60)}"
    return ConversionError(message, route, hint)
