"""Numbers and characters in JSON texts that arrow-json does not read exactly."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.formats.json.decimals import Decimals
from penstock.sdk.columns.binary_arrays import Bytes
from penstock.sdk.columns.conform import leaf_types
from penstock.sdk.columns.text_values import Times

FRACTION_DIGITS = 19
"""The digits after the decimal point that wide decimals have. Later ones are lost."""
_FLOAT_DIGITS = 15
"""The digits of a number that a float identifies."""
_NEAR_WHOLE = "|".join(
    rf"(?<=[0-9]{{{whole}}}\.)(?:0{{{_FLOAT_DIGITS - whole}}}0*[1-9]|9{{{_FLOAT_DIGITS - whole}}})"
    for whole in range(1, _FLOAT_DIGITS)
)
_ROUNDED = re.compile(rf"\.(?:{_NEAR_WHOLE}|(?<=[0-9]{{{_FLOAT_DIGITS}}}\.)0*[1-9])".encode())
_ROUNDED_EXPONENT = re.compile(
    rb"\.(?<=[0-9]{2}\.)[0-9]*[eE]-"
    + rb"|\.[0-9]{14,}[eE]\+?0*(?:1[0-6]|[0-9])(?![0-9])"
    + rb"|[eE](?:(?<=[0-9]{40}[eE])|-(?:(?<=[0-9]{16}[eE]-)|0*[1-9][0-9]{2}))"
)
"""A number that is not whole whose float may be whole. `1.5e-07`, the text of a small float, is
none."""
_WINDOW = 48
"""The bytes on each side of an exponent that `_ROUNDED_EXPONENT` examines."""
_SHORTENED = re.compile(rb"\.[0-9]{%d}" % (FRACTION_DIGITS + 1))
_SHORTENED_EXPONENT = re.compile(rb"[eE]-(?:(?<=[0-9.]{12}[eE]-)|0*[1-9][0-9])")
_SHORTENED_NANOS = re.compile(rb"\.[0-9]{17}")
_SHORTENED_NANOS_EXPONENT = re.compile(rb"[eE]-(?:(?<=[0-9.]{9}[eE]-)|0*[1-9][0-9])")
"""A number that may have more digits after the decimal point than a wide decimal."""
_DIGITS = np.zeros(256, bool)
_DIGITS[ord("0") : ord("9") + 1] = True
_SIGNED_DIGITS = _DIGITS.copy()
_SIGNED_DIGITS[[ord("+"), ord("-")]] = True
_HIGH_SURROGATE = re.compile(rb"\\u[dD](?:8[4-9a-fA-F]|[9aAbB][0-9a-fA-F])")
"""The escaped first half of a character from U+20000, which arrow-json confuses with others."""


def has_confused_characters(text: bytes) -> bool:
    """Returns whether a text has escapes that arrow-json reads as other characters."""
    return _HIGH_SURROGATE.search(text) is not None


def may_lose_digits(text: Bytes, schema: pa.Schema, times: Times, decimals: Decimals) -> bool:
    """Returns whether digits of a number may be lost in a float or in a wide decimal."""
    kinds = [kind for field in schema for kind in leaf_types(field.type)]
    numeric_times = times != "iso" and any(map(pa.types.is_timestamp, kinds))
    content = text.tobytes()
    if (numeric_times or any(map(pa.types.is_integer, kinds))) and _has_rounded(text, content):
        return True
    if numeric_times and times == "nanos":
        return bool(_SHORTENED_NANOS.search(content) or _SHORTENED_NANOS_EXPONENT.search(content))
    if not numeric_times and (decimals == "bytes" or not any(map(pa.types.is_decimal, kinds))):
        return False
    return bool(_SHORTENED.search(content) or _SHORTENED_EXPONENT.search(content))


def _has_rounded(text: Bytes, content: bytes) -> bool:
    """Returns whether a number that is not whole may have a float that is whole."""
    last = len(text) - 1

    def at(positions: npt.NDArray[np.intp], offset: int) -> Bytes:
        return text[np.clip(positions + offset, 0, last)]

    points = np.flatnonzero(text == ord("."))
    first, second = at(points, 1), at(points, 2)
    near = (first == second) & ((first == ord("0")) | (first == ord("9")))
    near |= _DIGITS[at(points, 1 - _FLOAT_DIGITS)]
    if any(_ROUNDED.match(content, point) for point in points[near].tolist()):
        return True
    letters = np.flatnonzero(text | 32 == ord("e"))
    letters = letters[_DIGITS[at(letters, -1)] & _SIGNED_DIGITS[at(letters, 1)]]
    return any(
        _ROUNDED_EXPONENT.search(content, max(0, letter - _WINDOW), letter + _WINDOW)
        for letter in letters.tolist()
    )
