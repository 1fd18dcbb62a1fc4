"""The wire format of Protobuf: varints, and values by their kind."""

from __future__ import annotations

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The kinds of values, the lower three bits of a tag."""
_FIXED = {FIXED64: 8, FIXED32: 4}


def varint(value: int) -> bytes:
    """Returns a number as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def read_varint(payload: bytes, position: int) -> tuple[int, int]:
    """Returns a varint and the position after it. Raises IndexError at the end."""
    value = shift = 0
    while True:
        byte = payload[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7


def skip_value(payload: bytes, kind: int, position: int) -> int:
    """Returns the position after a value that is no group. Raises KeyError for another kind."""
    if kind == VARINT:
        return read_varint(payload, position)[1]
    if kind == LENGTH:
        length, position = read_varint(payload, position)
        return position + length
    return position + _FIXED[kind]
