"""Wire format of the registry: a zero byte, the schema ID and, for Protobuf, message indexes."""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.core.errors import DecodeError

_HEAD = struct.Struct(">BI")
MAX_ID = 2**31 - 1


class Origin(NamedTuple):
    """A schema ID and, for Protobuf, the indexes of a message within the schema."""

    id: int
    message: tuple[int, ...] = ()


def split_header(payload: bytes, messages: bool) -> tuple[Origin, bytes]:
    """Splits a payload into its origin and body. Raises DecodeError if the header is invalid."""
    if len(payload) < _HEAD.size or payload[0]:
        raise _invalid_header("it does not start with a zero byte and a schema ID")
    _, id_ = _HEAD.unpack_from(payload)
    if id_ > MAX_ID:
        raise _invalid_header(f"{id_:,} is not a schema ID")
    if not messages:
        return Origin(id_), payload[_HEAD.size :]
    indexes, end = _message_indexes(payload, _HEAD.size)
    return Origin(id_, indexes), payload[end:]


def header(origin: Origin) -> bytes:
    """Returns the header of payloads of an origin."""
    head = _HEAD.pack(0, origin.id)
    if not origin.message:
        return head
    if origin.message == (0,):
        return head + b"\0"
    return head + b"".join(map(_encode_varint, (len(origin.message), *origin.message)))


def _message_indexes(payload: bytes, position: int) -> tuple[tuple[int, ...], int]:
    count, position = _read_varint(payload, position)
    if not count:
        return (0,), position
    if not 0 < count <= len(payload) - position:
        raise _invalid_header(f"{count:,} is not a valid number of message indexes")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(payload, position)
        indexes.append(index)
    return tuple(indexes), position


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    """Reads a zigzag varint. Returns the number and the end position."""
    value = 0
    for index in range(10):
        if position >= len(payload):
            break
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise _invalid_header("its message indexes are truncated")


def _encode_varint(value: int) -> bytes:
    value <<= 1
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _invalid_header(reason: str) -> DecodeError:
    return DecodeError(
        f"the payload has no header of a schema registry: {reason}",
        code="not-framed",
        hint="Remove `registry` from the format if the records were written without a registry.",
    )
