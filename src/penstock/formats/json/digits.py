"""Numbers and characters in JSON texts that arrow-json does not read exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.formats.json.decimals import Decimals
from penstock.sdk.columns.binary_arrays import Bytes
from penstock.sdk.columns.conform import leaf_types
from penstock.sdk.columns.scalar_parsing import Times

FRACTION_DIGITS = 19
"""The digits after the decimal point that wide decimals have. Later ones are lost."""
NANOS_FRACTION_DIGITS = 16
"""The same for wide decimals of times in nanoseconds."""
_FLOAT_DIGITS = 15
"""The digits of a number that a float identifies."""
_LONGEST = 400
"""The bytes of the longest number that is examined. Longer ones may lose digits."""
_EXPONENT_DIGITS = 6
"""The digits of the longest exponent that is examined."""
_NUMBER = re.compile(
    rb"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*(?:[eE][+-]?(?=[0-9])0*([0-9]*))?(?=[\",}\]\s]|$)"
)
"""A number, also one within a text, which arrow-json reads as a number too."""
_HIGH_SURROGATE = re.compile(rb"\\u[dD](?:8[4-9a-fA-F]|[9aAbB][0-9a-fA-F])")
"""The escaped first half of a character from U+20000, which arrow-json confuses with others."""


def has_confused_characters(text: bytes) -> bool:
    """Returns whether a text has escapes that arrow-json reads as other characters."""
    return _HIGH_SURROGATE.search(text) is not None


def may_lose_digits(text: Bytes, schema: pa.Schema, times: Times, decimals: Decimals) -> bool:
    """Returns whether digits of a number may be lost in a float or in a wide decimal."""
    kinds = [kind for field in schema for kind in leaf_types(field.type)]
    numeric_times = times != "iso" and any(map(pa.types.is_timestamp, kinds))
    has_floats = numeric_times or any(map(pa.types.is_integer, kinds))
    has_decimals = decimals != "bytes" and any(map(pa.types.is_decimal, kinds))
    if not (has_floats or has_decimals):
        return False
    numbers = _Numbers(text)
    if has_floats and numbers.have_rounded():
        return True
    digits = NANOS_FRACTION_DIGITS if numeric_times and times == "nanos" else FRACTION_DIGITS
    return (numeric_times or has_decimals) and numbers.have_more_digits(digits)


class _Numbers:
    """The numbers of a text with a decimal point or an exponent."""

    def __init__(self, text: Bytes) -> None:
        self._text = text
        self._content = text.tobytes()
        self._points = np.flatnonzero(text == ord("."))
        dead_letters = np.flatnonzero(text | 32 == ord("e"))
        dead_letters = dead_letters[_DIGITS[self._at(dead_letters, -1)]]
        self._exponents = dead_letters[_SIGNED_DIGITS[self._at(dead_letters, 1)]]

    def have_rounded(self) -> bool:
        """Returns whether a number that is not whole may have a float that is whole."""
        first, second = self._at(self._points, 1), self._at(self._points, 2)
        near = (first == second) & ((first == ord("0")) | (first == ord("9")))
        long = self._with_digits(range(-1, -_FLOAT_DIGITS, -1))
        candidates = np.concatenate([self._points[near], long, self._exponents])
        return any(map(_is_rounded, self._numbers_at(candidates)))

    def have_more_digits(self, digits: int) -> bool:
        """Returns whether a number has more digits after the decimal point."""
        candidates = np.concatenate([self._with_digits(range(1, digits + 2)), self._exponents])
        return any(_fraction_digits(number) > digits for number in self._numbers_at(candidates))

    def _with_digits(self, offsets: range) -> npt.NDArray[np.intp]:
        """Returns the decimal points with digits at all offsets."""
        points = self._points
        for offset in offsets:
            points = points[_DIGITS[self._at(points, offset)]]
        return points

    def _numbers_at(self, positions: npt.NDArray[np.intp]) -> Iterator[bytes | None]:
        """Yields the numbers around positions; None for a long one."""
        starts, moving = positions.copy(), np.arange(len(positions))
        for _ in range(_LONGEST):
            moving = moving[_IN_NUMBERS[self._at(starts[moving], -1)] & (starts[moving] > 0)]
            if not len(moving):
                break
            starts[moving] -= 1
        else:
            yield None
        starts = np.unique(starts[_BEFORE_NUMBERS[self._at(starts, -1)]])
        for start in starts.tolist():
            if number := _NUMBER.match(self._content, start):
                yield number[0] if len(number[1] or b"") <= _EXPONENT_DIGITS else None

    def _at(self, positions: npt.NDArray[np.intp], offset: int) -> Bytes:
        return self._text[np.clip(positions + offset, 0, len(self._text) - 1)]


def _is_rounded(number: bytes | None) -> bool:
    """Returns whether a number is not whole, and its float is. A long one may be."""
    if number is None:
        return True
    value = Decimal(number.decode())
    return float(number).is_integer() and value != value.to_integral_value()


def _fraction_digits(number: bytes | None) -> int:
    """Returns the number of digits after the decimal point in the notation without exponents."""
    if number is None:
        return _LONGEST
    exponent = Decimal(number.decode()).as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


def _bytes_of(characters: str) -> npt.NDArray[np.bool_]:
    found = np.zeros(256, bool)
    found[list(characters.encode())] = True
    return found


_DIGITS = _bytes_of("0123456789")
_SIGNED_DIGITS = _bytes_of("0123456789+-")
_IN_NUMBERS = _bytes_of("0123456789+-.eE")
_BEFORE_NUMBERS = _bytes_of('":,[ \t\r\n')
