"""Arrays of decimals: conversion of numbers, and moves of the decimal point.

Arrow multiplies decimals of 128 bits by powers of ten without a check for overflow, and divides
them incorrectly by some of these powers. Therefore the magnitude is checked before a larger scale,
and a smaller scale is reached in steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.scalar_parsing import EXACT, fits_decimal

_STEP = 9
_DIGITS = 38
"""The digits of a decimal of 128 bits."""
_WHOLE = {pa.float32(): float(2**24), pa.float64(): float(2**53)}
"""The magnitude from which all floats of a type are whole."""
_WIDE = pa.decimal256(2 * _DIGITS, _DIGITS)


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
    _check_magnitude(array, type_.precision - type_.scale)
    return reduce_scale(array, type_.scale).cast(type_)


def parse_plain(texts: pa.StringArray, type_: pa.DataType) -> pa.Array | None:
    """Converts numbers in plain digits to decimals; None if a text has another form.

    Raises ArrowInvalid if a value does not fit `type_`.
    """
    scale = max(type_.scale, 0)
    if scale < _DIGITS and _are_plain(texts, _DIGITS - scale, scale):
        return as_decimal(texts.cast(pa.decimal128(_DIGITS, scale)), type_)
    if _are_plain(texts, _DIGITS, _DIGITS):
        return as_decimal(texts.cast(_WIDE), type_)
    return None


def _are_plain(texts: pa.StringArray, whole: int, fraction: int) -> bool:
    """Returns whether all texts have at most this many digits before and after the point."""
    pattern = rf"^-?[0-9]{{1,{whole}}}" + (rf"(\.[0-9]{{1,{fraction}}})?$" if fraction else "$")
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def _check_magnitude(array: pa.Array, whole: int) -> None:
    """Raises ArrowInvalid if a decimal has more digits before the point than `whole`."""
    if pa.types.is_decimal256(array.type):
        integers = pa.decimal256(2 * _DIGITS, 0)
    else:
        integers = pa.decimal128(_DIGITS, 0)
        array = array.cast(pa.decimal128(_DIGITS, array.type.scale))
    digits = max(whole + array.type.scale, 0)
    if digits >= integers.precision:
        return
    bound = pa.scalar(Decimal(10**digits), integers)
    if pc.any(pc.greater_equal(pc.abs(array.view(integers)), bound)).as_py():
        raise pa.ArrowInvalid("a decimal has more digits than its type")


def _from_floats(array: pa.Array, type_: pa.DataType) -> pa.Array:
    texts, whole = array.cast(pa.string()), _WHOLE[array.type]
    if not pc.any(pc.greater_equal(pc.abs(array), whole)).as_py():
        plain = parse_plain(texts, type_)
        if plain is not None:
            return plain
    values = [
        value if value is None else Decimal(value if abs(value) >= whole else text)
        for value, text in zip(array.to_pylist(), texts.to_pylist(), strict=True)
    ]
    return decimal_array(values, type_)


def decimal_array(values: Iterable[Decimal | None], type_: pa.DataType) -> pa.Array:
    """Returns the array of decimals. Raises ArrowInvalid if a value does not fit `type_`."""
    plain = []
    for value in values:
        if value is not None and not fits_decimal(value, type_):
            raise pa.ArrowInvalid(f"{value} does not fit {type_}")
        plain.append(None if value is None else value.normalize(EXACT))
    return pa.array(plain, type_)


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
