"""Buffered reader for byte streams that may return short reads."""

from __future__ import annotations

import io
from typing import Any, BinaryIO


def buffered_reader(file: BinaryIO, size: int = 1 << 20) -> io.BufferedReader:
    """Wraps `file` so that reads are short only at the end. Does not close `file`."""
    return io.BufferedReader(_Raw(file), size)


class _Raw(io.RawIOBase):
    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)

    def tell(self) -> int:
        return self.position
