"""Messages between a transform and its sandbox process: a header in JSON, and a payload."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

_SIZES = struct.Struct("<IQ")


def write_frame(stream: BinaryIO, header: Any, payload: bytes = b"") -> None:
    """Writes a message. Raises OSError."""
    text = json.dumps(header).encode()
    stream.write(_SIZES.pack(len(text), len(payload)) + text)
    stream.write(payload)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[Any, bytes]:
    """Returns the header and the payload of a message. Raises EOFError."""
    header_size, payload_size = _SIZES.unpack(_read(stream, _SIZES.size))
    return json.loads(_read(stream, header_size)), _read(stream, payload_size)


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
