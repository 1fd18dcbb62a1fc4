"""Conversion of values to those that formats of text write."""

from __future__ import annotations

import base64
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.text_values import TimeForm, Times

_EXACT_DIVISORS = {"seconds": 1e6, "millis": 1e3}
"""Microseconds of a unit. The quotient of numbers below 2^53 identifies the microsecond."""


def to_text(array: pa.Array, type_: pa.DataType, times: Times) -> pa.Array:
    """Converts timestamps to numbers and binary to base64, for `rebuild`."""
    if pa.types.is_string(type_) and pa.types.is_binary(array.type):
        texts = [
            value if value is None else base64.b64encode(value).decode()
            for value in array.to_pylist()
        ]
        return pa.array(texts, type_)
    if not pa.types.is_timestamp(array.type) or type_ not in (pa.int64(), pa.float64()):
        return cast(array, type_)
    if times in _EXACT_DIVISORS and pa.types.is_floating(type_):
        with suppress(pa.ArrowInvalid):
            return pc.divide(array.cast(pa.int64()).cast(type_), _EXACT_DIVISORS[times])
    return Conversion(TimeForm(times))(array, type_)


def text_type(type_: pa.DataType, times: Times) -> pa.DataType:
    """Returns the type that `to_text` produces for a primitive type."""
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return pa.string()
    if pa.types.is_timestamp(type_) and times != "iso":
        return pa.int64() if times in ("micros", "nanos") else pa.float64()
    return type_
