"""Messages behind their lengths, which are varints: one in a payload, or many in a file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from penstock.core.errors import DecodeError
from penstock.sdk.kit.streams import buffered

_BLOCK = 4096
_LONGEST = 64 << 20


def behind_length(message: bytes) -> bytes:
    """A message with its length before it."""
    value, found = len(message), bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value]) + message


def unpacked(payload: bytes) -> bytes:
    """The message of a payload. Raises DecodeError unless its length is that of all the rest."""
    stream = io.BytesIO(payload)
    length, error = _length(stream, "payload")
    if length is None:
        raise error or DecodeError("the payload is empty, without a length", code="cut-off")
    message = stream.read()
    if len(message) != length:
        raise DecodeError(
            f"the length says {length:,} bytes, and {len(message):,} follow",
            code="wrong-length",
            hint="payloads that are messages alone need no `length_delimited`",
        )
    return message


def messages(file: BinaryIO) -> Iterator[tuple[list[bytes], DecodeError | None]]:
    """Messages in groups; with the last, what is wrong with the rest of the file."""
    stream = buffered(file)
    found: list[bytes] = []
    size = 0
    while True:
        length, error = _length(stream, "file")
        if length is not None:
            payload = stream.read(length)
            if len(payload) == length:
                found.append(payload)
                size += length
            else:
                length, error = None, DecodeError("the file ends within a message", code="cut-off")
        if length is None or len(found) >= _BLOCK or size >= 1 << 22:
            if found or error is not None:
                yield found, error
            found, size = [], 0
        if length is None:
            return


def _length(stream: BinaryIO, whole: str) -> tuple[int | None, DecodeError | None]:
    """The length that comes next; or what is wrong with it, if it is not the end."""
    value = 0
    for place in range(10):
        byte = stream.read(1)
        if not byte:
            cut = DecodeError(f"the {whole} ends within a length", code="cut-off")
            return None, cut if place else None
        value |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            break
    else:
        return None, DecodeError("a length of more than ten bytes", code="too-long")
    if value > _LONGEST:
        return None, DecodeError(f"a message of {value:,} bytes", code="too-long")
    return value, None
