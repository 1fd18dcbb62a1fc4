"""How far a journal is durable, told by the process that writes it to those that read it."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple, Self

_NAME = "durable"
_NUMBERS = struct.Struct("=QQ")


class Marked(NamedTuple):
    """Positions before `end` are durable; `lost` counts the messages that could not be taken.

    After a crash of the machine the numbers may be older than the segments, never newer.
    """

    end: int
    lost: int

    @classmethod
    def of(cls, directory: Path) -> Self:
        """The numbers of a journal; zero where there is none yet."""
        try:
            return cls(*_NUMBERS.unpack((directory / _NAME).read_bytes()))
        except (FileNotFoundError, struct.error):
            return cls(0, 0)


class Mark:
    """The same numbers as the one process has them that writes the journal."""

    def __init__(self, directory: Path) -> None:
        path = directory / _NAME
        with path.open("a+b") as file:
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
        """Lets go of the file."""
        self._numbers.release()
        self._map.close()
