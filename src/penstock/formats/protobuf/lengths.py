"""Length-delimited messages: one in a payload, many in a file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from penstock.core.errors import DecodeError
from penstock.formats.protobuf.wire import varint
from penstock.sdk.encoding.buffered_reader import buffered_reader

_BLOCK = 4096
_LONGEST = 64 << 20


def delimit(message: bytes) -> bytes:
    """Adds the length before a message."""
    return varint(len(message)) + message


def undelimit(payload: bytes) -> bytes:
    """Returns the message of a payload. Raises DecodeError if the length does not match."""
    stream = io.BytesIO(payload)
    length, error = _read_length(stream, "payload")
    if length is None:
        raise error or DecodeError("the payload is empty", code="cut-off")
    message = stream.read()
    if len(message) != length:
        raise DecodeError(
            f"expected a message of {length:,} bytes, found {len(message):,}",
            code="wrong-length",
            hint="Remove `length_delimited` if payloads have no length prefix.",
        )
    return message


def read_messages(file: BinaryIO) -> Iterator[tuple[list[bytes], DecodeError | None]]:
    """Yields messages in groups, and with the last group the error after its messages."""
    stream = buffered_reader(file)
    messages: list[bytes] = []
    size = 0
    while True:
        length, error = _read_length(stream, "file")
        if length is not None:
            payload = stream.read(length)
            if len(payload) == length:
                messages.append(payload)
                size += length
            else:
                length, error = None, DecodeError("the file ends within a message", code="cut-off")
        if length is None or len(messages) >= _BLOCK or size >= 1 << 22:
            if messages or error is not None:
                yield messages, error
            messages, size = [], 0
        if length is None:
            return


def _read_length(stream: BinaryIO, container: str) -> tuple[int | None, DecodeError | None]:
    """Reads the next length. Returns the error if the length is invalid; neither at the end."""
    value = 0
    for index in range(10):
        byte = stream.read(1)
        if not byte:
            cut = DecodeError(f"the {container} ends within a length", code="cut-off")
            return None, cut if index else None
        value |= (byte[0] & 0x7F) << (7 * index)
        if byte[0] < 0x80:
            break
    else:
        return None, DecodeError("a length of more than ten bytes", code="too-large")
    if value > _LONGEST:
        return None, DecodeError(f"a message of {value:,} bytes", code="too-large")
    return value, None
