"""Text forms of single values: validation, normalisation and conversion."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.conform import cast
from penstock.sdk.columns.times import parse_timestamps

Times = Literal["iso", "seconds", "millis", "micros"]
"""The form of timestamps: ISO 8601, or numbers since 1970 in a unit."""
NumberTimes = Literal["reject", "nanos"]
"""Numbers in place of ISO 8601: errors, or nanoseconds since 1970."""

_COMMON_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-2][0-9]:[0-9]{2}:[0-9]{2}(\.[0-9]{3}|\.[0-9]{6})?Z?\Z"
)
PER_SECOND = {"seconds": 1, "millis": 10**3, "micros": 10**6}


def canonical(text: str, type_: pa.DataType, times: Times) -> str | None:
    """Returns the normalised text of a value of a primitive type; None if the text is invalid."""
    if pa.types.is_string(type_):
        return text
    if pa.types.is_boolean(type_):
        return {"true": "true", "false": "false", "1": "true", "0": "false"}.get(text.lower())
    if pa.types.is_floating(type_) or (pa.types.is_timestamp(type_) and times != "iso"):
        return _floating(text)
    if pa.types.is_integer(type_):
        return _integer(text, type_)
    if pa.types.is_decimal(type_):
        return _decimal(text, type_)
    return text if _is_valid(text, type_) else None


def number(text: str) -> Decimal | None:
    """Parses a finite number; None for other texts."""
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) < 400 else None


def _floating(text: str) -> str | None:
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        float(text)
    except ValueError:
        return None
    return text


def _integer(text: str, type_: pa.DataType) -> str | None:
    value = number(text)
    if value is None or value != value.to_integral_value():
        return None
    bound = 1 << (type_.bit_width - 1)
    return str(int(value)) if -bound <= value < bound else None


def _decimal(text: str, type_: pa.DataType) -> str | None:
    value = number(text)
    if value is None:
        return None
    try:
        pa.array([value], type_)
    except pa.ArrowInvalid:
        return None
    return format(value, "f")


def _is_valid(text: str, type_: pa.DataType) -> bool:
    try:
        if pa.types.is_timestamp(type_):
            if _COMMON_TIME.match(text):
                datetime.fromisoformat(text)
                return True
            parse_timestamps(pa.array([text]), type_)
        elif pa.types.is_binary(type_):
            base64.b64decode(text, validate=True)
        else:
            pa.array([text]).cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, binascii.Error, ValueError):
        return False
    return True


def from_text(array: pa.Array, type_: pa.DataType, times: Times) -> pa.Array:
    """Converts text or floats to timestamps and base64 text to binary, for `rebuild`."""
    if pa.types.is_timestamp(type_) and pa.types.is_string(array.type):
        return parse_timestamps(array, type_)
    if pa.types.is_timestamp(type_) and pa.types.is_floating(array.type):
        micros = pc.round(pc.multiply(array, 1e6 / PER_SECOND[times]))
        return micros.cast(pa.int64()).cast(type_)
    if pa.types.is_binary(type_) and pa.types.is_string(array.type):
        return pa.array(
            [value and base64.b64decode(value, validate=True) for value in array.to_pylist()], type_
        )
    return cast(array, type_)


def to_text(array: pa.Array, type_: pa.DataType, times: Times) -> pa.Array:
    """Converts timestamps and binary as `from_text` reads them."""
    if pa.types.is_string(type_) and pa.types.is_binary(array.type):
        texts = [
            value if value is None else base64.b64encode(value).decode()
            for value in array.to_pylist()
        ]
        return pa.array(texts, type_)
    if not pa.types.is_timestamp(array.type) or type_ not in (pa.int64(), pa.float64()):
        return cast(array, type_)
    micros = array.cast(pa.int64())
    if times == "micros":
        return micros
    return pc.divide(micros.cast(pa.float64()), 1e6 / PER_SECOND[times])


def text_type(type_: pa.DataType, times: Times) -> pa.DataType:
    """Returns the type that `to_text` produces for a primitive type."""
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return pa.string()
    if pa.types.is_timestamp(type_) and times != "iso":
        return pa.int64() if times == "micros" else pa.float64()
    return type_
