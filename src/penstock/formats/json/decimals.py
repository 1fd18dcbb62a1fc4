"""Forms of DECIMAL in JSON: numbers, texts, or the base64 of unscaled values."""

from __future__ import annotations

import base64
import binascii
from decimal import Context, Decimal
from typing import Literal, NamedTuple

import pyarrow as pa

from penstock.sdk.columns.conversion import cast
from penstock.sdk.columns.scalar_parsing import Times, fits_decimal

Decimals = Literal["number", "string", "bytes"]
"""The form of decimals. `bytes` is that of Kafka Connect: base64 of the unscaled value, as a two's
complement number in big-endian order."""
_EXACT = Context(prec=80)


class Forms(NamedTuple):
    """The forms of values whose type depends on options."""

    times: Times
    decimals: Decimals


def is_text(type_: pa.DataType, form: Decimals) -> bool:
    """Returns whether values of a primitive type are decimals that are written as text."""
    return bool(pa.types.is_decimal(type_)) and form != "number"


def write_decimals(array: pa.Array, form: Decimals) -> pa.Array:
    """Returns decimals as texts of a form."""
    scale = array.type.scale
    values = array.to_pylist()
    if form == "string":
        return pa.array([None if value is None else format(value, "f") for value in values])
    return pa.array([None if value is None else _encode(value, scale) for value in values])


def read_decimals(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns the decimals of texts of the form `bytes`. Raises ArrowInvalid or ValueError."""
    if not pa.types.is_string(array.type):
        return cast(array, type_)
    values = [None if text is None else decode(text, type_.scale) for text in array.to_pylist()]
    return pa.array(values, type_)


def canonical_bytes(text: str, type_: pa.DataType, *, is_number: bool) -> str | None:
    """Returns the form `bytes` of a number or of such a text; None if it is invalid."""
    try:
        value = Decimal(text) if is_number else decode(text, type_.scale)
        fits = value.is_finite() and fits_decimal(value, type_)
    except (ArithmeticError, ValueError):
        return None
    if not fits:
        return None
    return _encode(value, type_.scale)


def decode(text: str, scale: int) -> Decimal:
    """Returns the value of a text of the form `bytes`. Raises ValueError."""
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None
    if not content or len(content) > 16:
        raise ValueError("expected the bytes of a decimal")
    unscaled = int.from_bytes(content, "big", signed=True)
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _encode(value: Decimal, scale: int) -> str:
    unscaled = int(value.scaleb(scale, _EXACT))
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    content = unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
    return base64.b64encode(content).decode()
