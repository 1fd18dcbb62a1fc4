"""Text file of limited size, whose earlier parts are kept in numbered files."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import TextIO, cast

from penstock.core.files.private_files import open_private

MAX_BYTES = 20 * 1024 * 1024
KEPT_FILES = 3
"""The number of files: the file that is written, and earlier ones with the suffixes .1 and .2."""


class RotatedFile(io.TextIOBase):
    """A file of whole lines. A write that would exceed `max_bytes` starts a new file.

    The files can be read by their owner only. May be written from several threads.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._file = open_private(path, "a")
        self._size = path.stat().st_size

    def write(self, text: str) -> int:
        size = len(text.encode())
        with self._lock:
            if self._size and self._size + size > self._max_bytes:
                self._rotate()
            self._file.write(text)
            self._size += size
        return len(text)

    def flush(self) -> None:
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        super().close()
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(KEPT_FILES - 1, 0, -1):
            earlier = numbered(self._path, number - 1)
            if earlier.exists():
                earlier.replace(numbered(self._path, number))
        self._file, self._size = open_private(self._path, "a"), 0


def open_rotated(path: Path) -> TextIO:
    """Opens a rotated file for writing. Raises OSError."""
    return cast(TextIO, RotatedFile(path))


def numbered(path: Path, number: int) -> Path:
    """Returns the path of the file with a number: 0 is written now, higher ones are earlier."""
    return path.with_name(f"{path.name}.{number}") if number else path
