"""Reading of files in object stores whose responses can be cut."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, BinaryIO, cast

_MARKS = b"\xff\x00"
"""Two values of the last byte of a buffer before a read. The first one is rare in text."""


def open_whole(open_file: Callable[[], Any]) -> BinaryIO:
    """Opens a file of an object store with pyarrow, once more if it seems to be empty.

    Each read returns all of its bytes or raises OSError.
    """
    file = open_file()
    if not file.size():
        # The client takes the size for 0 if the response was cut between its headers.
        file.close()
        file = open_file()
    return cast(BinaryIO, _WholeReads(file))


class SizedReads(io.RawIOBase):
    """A file whose size is known, read from a position."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = (0, self._position, self._size)[whence] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: max(0, self._size - self._position)]
        if view:
            self._fill(view)
        self._position += len(view)
        return len(view)

    def readall(self) -> bytes:
        return self.read(max(0, self._size - self._position)) or b""

    @abstractmethod
    def _fill(self, view: memoryview) -> None:
        """Reads bytes from the position until a buffer is full. Raises OSError."""


class _WholeReads(SizedReads):
    """A file of an object store, without short reads before its end.

    The client for S3 does not detect a response that was cut between its headers, and returns
    memory to which it has not written. A buffer is complete if its last byte was written. If this
    byte has the value that it had before the read, the read is repeated with another value.
    """

    def __init__(self, file: Any) -> None:
        super().__init__(file.size())
        self._file = file

    def _fill(self, view: memoryview) -> None:
        for mark in _MARKS:
            view[-1] = mark
            self._file.seek(self._position)
            if self._file.readinto(view) == len(view) and view[-1] != mark:
                return
        raise OSError(f"the response ended before its {len(view)} bytes")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
