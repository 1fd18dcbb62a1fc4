"""Registers and bits of a device as values of points."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from penstock.connectors.modbus.config import NUMBER_CODES, Point


def decode_bits(point: Point, bits: Sequence[bool]) -> Any:
    """Returns the value of a point in a table of bits; a list of several values."""
    return _unwrap_single([bool(bit) for bit in bits[: point.quantity]])


def decode_registers(point: Point, registers: Sequence[int]) -> Any:
    """Returns the value of a point in registers; a list of several values.

    NaN and infinite numbers become None.
    """
    words = [register.to_bytes(2, point.byte_order) for register in registers]
    if point.data_type == "string":
        return b"".join(_order_words(point, words)).rstrip(b"\0").decode(errors="replace")
    if point.data_type == "bits":
        numbers = (int.from_bytes(word, "big") for word in words)
        return [bool(number >> bit & 1) for number in numbers for bit in range(16)]
    groups = [words[start : start + point.width] for start in range(0, len(words), point.width)]
    return _unwrap_single([_decode_number(point, group) for group in groups])


def zero_value(point: Point) -> Any:
    """Returns the value of a point whose bits or registers are all 0."""
    zeros = [False] * point.count
    return decode_bits(point, zeros) if point.is_bits else decode_registers(point, zeros)


def _decode_number(point: Point, words: list[bytes]) -> Any:
    code = NUMBER_CODES[point.data_type]
    (number,) = struct.unpack(f">{code}", b"".join(_order_words(point, words)))
    if not math.isfinite(number):
        return None
    return number * point.scale + point.offset if point.scaled else number


def _order_words(point: Point, words: list[bytes]) -> list[bytes]:
    return words if point.word_order == "big" else words[::-1]


def _unwrap_single(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values
