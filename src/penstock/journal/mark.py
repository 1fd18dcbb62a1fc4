"""The durable end of a journal, shared by its writer with its readers."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple, Self

from penstock.core.files.private_files import open_private

_NAME = "durable"
_NUMBERS = struct.Struct("=QQ")


class MarkValues(NamedTuple):
    """Values of a mark: positions before `end` are durable, `lost` messages were dropped.

    After a crash of the machine the values may be older than the segments, never newer.
    """

    end: int
    lost: int

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Returns the values of a journal; zero without a mark."""
        try:
            return cls(*_NUMBERS.unpack((directory / _NAME).read_bytes()))
        except (FileNotFoundError, struct.error):
            return cls(0, 0)


class Mark:
    """The values in a memory map, for the writer."""

    def __init__(self, directory: Path) -> None:
        path = directory / _NAME
        with open_private(path, "a+b") as file:
            if path.stat().st_size < _NUMBERS.size:
                file.truncate(_NUMBERS.size)
            self._map = mmap.mmap(file.fileno(), _NUMBERS.size)
        self._numbers = memoryview(self._map).cast("Q")

    @property
    def end(self) -> int:
        return self._numbers[0]

    @end.setter
    def end(self, position: int) -> None:
        self._numbers[0] = position

    @property
    def lost(self) -> int:
        return self._numbers[1]

    @lost.setter
    def lost(self, count: int) -> None:
        self._numbers[1] = count

    def close(self) -> None:
        """Closes the file."""
        self._numbers.release()
        self._map.close()
