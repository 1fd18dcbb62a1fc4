"""Conversion of values to those that formats of text write."""

from __future__ import annotations

import base64

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.conversion import Conversion, cast, is_number
from penstock.sdk.columns.scalar_parsing import TimeForm, Times

_MICROS = {"seconds": 10**6, "millis": 10**3}
"""Microseconds of a unit."""
_DECIMALS = {"seconds": pa.decimal128(30, 6), "millis": pa.decimal128(30, 3)}
_FAR = 2**33 * 10**6
"""The microseconds from 1970, of the year 2242, from which adjacent floats of seconds or of
milliseconds are more than a microsecond apart."""


def to_text(array: pa.Array, type_: pa.DataType, times: Times) -> pa.Array:
    """Converts timestamps to numbers and binary to base64, for `rebuild`.

    Raises ArrowInvalid for a time that has no exact number of the type.
    """
    if pa.types.is_string(type_) and pa.types.is_binary(array.type):
        texts = [
            value if value is None else base64.b64encode(value).decode()
            for value in array.to_pylist()
        ]
        return pa.array(texts, type_)
    if not pa.types.is_timestamp(array.type) or not is_number(type_):
        return cast(array, type_)
    if times in _MICROS and pa.types.is_floating(type_):
        micros = array.cast(pa.int64())
        if pc.any(pc.or_(pc.greater_equal(micros, _FAR), pc.less_equal(micros, -_FAR))).as_py():
            raise pa.ArrowInvalid("a time without an exact float")
        return pc.divide(micros.cast(type_), float(_MICROS[times]))
    return Conversion(TimeForm(times))(array, type_)


def text_type(type_: pa.DataType, times: Times, *, far: bool = False) -> pa.DataType:
    """Returns the type that `to_text` produces for a primitive type.

    With `far` fractions of seconds and milliseconds are decimals, which are exact in any year.
    """
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return pa.string()
    if pa.types.is_timestamp(type_) and times != "iso":
        if times not in _DECIMALS:
            return pa.int64()
        return _DECIMALS[times] if far else pa.float64()
    return type_
