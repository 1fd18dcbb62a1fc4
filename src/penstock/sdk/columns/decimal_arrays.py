"""Arrays of decimals: conversion of numbers, and moves of the decimal point."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

_STEP = 9
_WHOLE = float(2**53)
"""The magnitude from which all floats are whole."""


def as_decimal(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Converts numbers to decimals. Raises ArrowInvalid if a value does not fit `type_`.

    A float that is not whole is the shortest decimal that identifies it: 0.1, not
    0.1000000000000000055.
    """
    if pa.types.is_floating(array.type):
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid:
            return _from_floats(array, type_)
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    return reduce_scale(array, type_.scale).cast(type_)


def _from_floats(array: pa.Array, type_: pa.DataType) -> pa.Array:
    texts = array.cast(pa.string())
    if not pc.any(pc.greater_equal(pc.abs(array), _WHOLE)).as_py():
        return texts.cast(type_)
    values = [
        value if value is None else Decimal(value if abs(value) >= _WHOLE else text)
        for value, text in zip(array.to_pylist(), texts.to_pylist(), strict=True)
    ]
    return pa.array(values, type_)


def reduce_scale(array: pa.Array, scale: int) -> pa.Array:
    """Reduces the scale of decimals. Raises ArrowInvalid for digits that would be lost.

    Arrow divides some numbers, as 2^64 - 1, incorrectly by a divisor of more than 32 bits, so the
    scale is reduced in steps of `_STEP` places.
    """
    decimal_type = pa.decimal256 if pa.types.is_decimal256(array.type) else pa.decimal128
    while array.type.scale > scale:
        reduced = max(scale, array.type.scale - _STEP)
        array = array.cast(decimal_type(array.type.precision, reduced))
    return array


def shift_point(array: pa.Array, places: int) -> pa.Array:
    """Multiplies decimals by a power of ten, exactly."""
    type_ = array.type
    return array.view(pa.decimal128(type_.precision, type_.scale - places))
