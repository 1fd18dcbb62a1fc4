"""Byte streams read forward."""

from __future__ import annotations

import io
from typing import Any, BinaryIO


def buffered(file: BinaryIO, size: int = 1 << 20) -> io.BufferedReader:
    """`file` so that a read gives less than asked for only at the end. Does not close `file`."""
    return io.BufferedReader(_Raw(file), size)


class _Raw(io.RawIOBase):
    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.place = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)

    def tell(self) -> int:
        return self.place
