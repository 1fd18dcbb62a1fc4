"""What stands before a payload: a zero byte, the schema's id, and for Protobuf the message."""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.core.errors import DecodeError

_HEAD = struct.Struct(">BI")
LARGEST = 2**31 - 1
"""No id is larger."""


class Origin(NamedTuple):
    """The id of a schema, and the way to a message in it: its place in the file, then inside."""

    id: int
    message: tuple[int, ...] = ()


def opened(payload: bytes, messages: bool) -> tuple[Origin, bytes]:
    """By what a payload was written, and the rest of it. Raises DecodeError if it does not say."""
    if len(payload) < _HEAD.size or payload[0]:
        raise _unframed("it does not begin with a zero byte and the id of a schema")
    _, id_ = _HEAD.unpack_from(payload)
    if id_ > LARGEST:
        raise _unframed(f"{id_:,} is not the id of a schema")
    if not messages:
        return Origin(id_), payload[_HEAD.size :]
    way, end = _way(payload, _HEAD.size)
    return Origin(id_, way), payload[end:]


def header(origin: Origin) -> bytes:
    """What a payload begins with."""
    head = _HEAD.pack(0, origin.id)
    if not origin.message:
        return head
    if origin.message == (0,):
        return head + b"\0"
    return head + b"".join(map(_varint, (len(origin.message), *origin.message)))


def _way(payload: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _number(payload, at)
    if not count:
        return (0,), at
    if not 0 < count <= len(payload) - at:
        raise _unframed(f"{count:,} is not a number of message indexes")
    way = []
    for _ in range(count):
        index, at = _number(payload, at)
        way.append(index)
    return tuple(way), at


def _number(payload: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of seven bits a byte, and where it ends."""
    value = 0
    for place in range(10):
        if at >= len(payload):
            break
        byte = payload[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise _unframed("its message indexes are cut off")


def _varint(value: int) -> bytes:
    value <<= 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _unframed(why: str) -> DecodeError:
    return DecodeError(
        f"the payload is not framed for a schema registry: {why}",
        code="not-framed",
        hint="records that were not written with a registry need a format without `registry`",
    )
