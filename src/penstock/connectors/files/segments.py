"""Ranges of complete lines of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

SEGMENT_BYTES = 64_000_000
"""The size of the ranges of a large or growing file."""
CHUNK_BYTES = 1 << 20


def segments(
    file: BinaryIO, start: int, size: int, whole: bool = False
) -> Iterator[tuple[int, int, int]]:
    """Yields the start, the stop and the number of lines of each range between two offsets.

    The ranges hold complete lines. With `whole` they include a last line without a line end.
    """
    file.seek(start)
    position = stop = start
    lines = 0
    while position < size and (chunk := file.read(min(CHUNK_BYTES, size - position))):
        end = chunk.rfind(b"\n") + 1
        if end:
            lines += chunk.count(b"\n")
            stop = position + end
        position += len(chunk)
        if stop - start >= SEGMENT_BYTES:
            yield start, stop, lines
            start, lines = stop, 0
    if whole and position > stop:
        stop, lines = position, lines + 1
    if stop > start:
        yield start, stop, lines
