"""Text forms of single values: validation and normalisation."""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import datetime
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.core.text import shorten
from penstock.sdk.columns.times import Nanoseconds, parse_timestamps

Times = Literal["iso", "seconds", "millis", "micros", "nanos"]
"""The form of timestamps: ISO 8601, or numbers since 1970 in a unit."""
NumberTimes = Literal["reject", "nanos"]
"""Numbers in place of ISO 8601: errors, or nanoseconds since 1970."""


class TimeForm(NamedTuple):
    """The form of timestamps in text and numbers."""

    times: Times = "iso"
    nanoseconds: Nanoseconds = "reject"


ISO = TimeForm()
TRUNCATE_HINT = "Set nanoseconds: truncate."
UNIT_HINT = "Set timestamps to the unit of the numbers: seconds, millis, micros or nanos."
_COMMON_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-2][0-9]:[0-9]{2}:[0-9]{2}(\.[0-9]{3}|\.[0-9]{6})?Z?\Z"
)
_INFINITY = re.compile(r"[+-]?inf(inity)?\Z", re.IGNORECASE)
_MICROSECOND = {"seconds": -6, "millis": -3, "micros": 0, "nanos": 3}
"""A microsecond as a power of ten of the unit."""
EXACT = Context(prec=1000)
"""A context for digits of all finite floats and of all decimals."""
NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Texts of floats that JSON has no numbers for, by their text in Python and Arrow."""


def exact_double(text: str) -> float:
    """Returns the double of the text of a number. Raises ValueError if it has fewer digits.

    A double is written with up to 17 digits.
    """
    number = float(text)
    if Decimal(text) not in (Decimal(repr(number)), Decimal(f"{number:.17g}")):
        raise ValueError(f"{shorten(text, 50)} has more digits than a double")
    return number


def canonical(text: str, type_: pa.DataType, form: TimeForm) -> str | None:
    """Returns the normalised text of a value of a primitive type; None if the text is invalid."""
    if pa.types.is_string(type_):
        return text
    if pa.types.is_boolean(type_):
        return {"true": "true", "false": "false", "1": "true", "0": "false"}.get(text.lower())
    if pa.types.is_floating(type_):
        return _floating(text, type_)
    if pa.types.is_integer(type_):
        return _integer(text, type_)
    if pa.types.is_decimal(type_):
        return _decimal(text, type_)
    if pa.types.is_timestamp(type_) and form.times != "iso":
        return _time_number(text, form)
    return text if _is_valid(text, type_, form) else None


def number(text: str) -> Decimal | None:
    """Parses a finite number; None for other texts."""
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) < 400 else None


def _floating(text: str, type_: pa.DataType) -> str | None:
    """Returns the text of a number, infinity or NaN; None for a number out of range."""
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        is_infinite = math.isinf(value) or (
            not pa.types.is_float64(type_) and bool(np.isinf(np.float32(value)))
        )
    return None if is_infinite and not _INFINITY.match(text) else text


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
    return format(value.normalize(EXACT), "f") if fits_decimal(value, type_) else None


def fits_decimal(value: Decimal, type_: pa.DataType) -> bool:
    """Returns whether a finite number has no more digits than a DECIMAL type."""
    unscaled = value.scaleb(type_.scale, EXACT)
    return unscaled == unscaled.to_integral_value() and unscaled.copy_abs() < 10**type_.precision


def _time_number(text: str, form: TimeForm) -> str | None:
    """Returns a number since 1970 in plain digits, without digits below a microsecond."""
    value = number(text)
    if value is None:
        return None
    microsecond = Decimal(1).scaleb(_MICROSECOND[form.times])
    rounded = value.quantize(microsecond, ROUND_FLOOR, EXACT)
    micros = rounded.scaleb(-_MICROSECOND[form.times], EXACT)
    in_range = -(2**63) <= micros < 2**63
    is_exact = rounded == value or form.nanoseconds == "truncate"
    return format(rounded, "f") if in_range and is_exact else None


def time_hint(text: str, type_: pa.DataType, form: TimeForm) -> str | None:
    """Returns the option with which an invalid text is a timestamp; None without one."""
    if not pa.types.is_timestamp(type_):
        return None
    if canonical(text, type_, TimeForm(form.times, "truncate")) is not None:
        return TRUNCATE_HINT
    return UNIT_HINT if form.times == "iso" and number(text) is not None else None


def _is_valid(text: str, type_: pa.DataType, form: TimeForm) -> bool:
    try:
        if pa.types.is_timestamp(type_):
            if _COMMON_TIME.match(text):
                datetime.fromisoformat(text)
                return True
            parse_timestamps(pa.array([text]), type_, form.nanoseconds)
        elif pa.types.is_binary(type_):
            base64.b64decode(text, validate=True)
        else:
            pa.array([text]).cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, binascii.Error, ValueError):
        return False
    return True
