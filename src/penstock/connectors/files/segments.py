"""Ranges of complete lines, or of complete records of several lines, of a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple

from penstock.sdk.encoding.lines import LINE_START, MAX_LENGTH

SEGMENT_BYTES = 64_000_000
"""The size of the ranges of a large or growing file."""
CHUNK_BYTES = 1 << 20
ENDLESS_RECORD_BYTES = 2 * MAX_LENGTH + 8
"""The size from which a record is too long, also where it is shorter without line ends `\\r\\n`."""

LastStart = Callable[[bytes], int | None]
"""The offset of the last line of complete lines that starts a record; None without one."""
End = Literal["record", "line", "file"]
"""The content before the end of a file that is complete: up to the last start of a record, the last
line end, or the end."""


@dataclass(frozen=True)
class SpannedLines:
    """The records of several lines of a growing file.

    The last record is complete when the next one starts, or when the file was not modified for
    `idle_timeout` seconds.
    """

    last_start: LastStart
    idle_timeout: float

    def is_idle(self, modified: int) -> bool:
        """Returns whether the last record of a file is complete. `modified` is in nanoseconds."""
        return time.time_ns() - modified >= self.idle_timeout * 1e9


class Segment(NamedTuple):
    """A range of a file, and its number of lines.

    With `ends_inside` the record at its end is too long and continues after the range.
    """

    start: int
    stop: int
    lines: int
    ends_inside: bool = False


def segments(file: BinaryIO, start: int, size: int, whole: bool = False) -> Iterator[Segment]:
    """Yields the ranges between two offsets of a file whose records are lines.

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
            yield Segment(start, stop, lines)
            start, lines = stop, 0
    if whole and position > stop:
        stop, lines = position, lines + 1
    if stop > start:
        yield Segment(start, stop, lines)


def record_segments(
    file: BinaryIO, start: int, size: int, end: End, last_start: LastStart, inside: bool = False
) -> Iterator[Segment]:
    """Yields the ranges between two offsets of a file whose records have several lines.

    The ranges end before a record; the last one ends as `end` states. A record that is too long
    and not complete ends a range as well. With `inside` the first range starts in such a record:
    it may end after any line before the next record.
    """
    scan = _RecordScan(start, inside)
    file.seek(start)
    position = start
    line = _UnfinishedLine()
    while position < size and (chunk := file.read(min(CHUNK_BYTES, size - position))):
        position += len(chunk)
        complete = chunk.rfind(b"\n") + 1
        if complete:
            scan.read(line, chunk[:complete], last_start)
            line = _UnfinishedLine()
        line.extend(chunk[complete:])
        if scan.stop - scan.start >= SEGMENT_BYTES:
            yield scan.segment()
    scan.end(position, end)
    if scan.stop > scan.start:
        yield scan.segment()


class _UnfinishedLine:
    """A line of which the end was not read. Of a too long one only the first bytes are kept."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    @property
    def is_too_long(self) -> bool:
        return self.size > MAX_LENGTH + 1

    def extend(self, part: bytes) -> None:
        if not self.is_too_long:
            self.parts.append(part)
        self.size += len(part)
        if self.is_too_long:
            self.parts = [b"".join(self.parts)[:LINE_START]]


class _RecordScan:
    """The progress of a search for the starts of records.

    `position` is the end of the complete lines, and `stop` the last offset at which a range may
    end. `lines` and `stop_lines` are the numbers of lines between `start` and these offsets.
    """

    def __init__(self, start: int, inside: bool) -> None:
        self.start = self.stop = self.position = start
        self.lines = self.stop_lines = 0
        self.inside = inside

    def read(self, line: _UnfinishedLine, lines: bytes, last_start: LastStart) -> None:
        """Adds complete lines, of which the first one starts with `line`."""
        kept, skipped = b"".join(line.parts), 0
        if line.is_too_long:
            end = lines.find(b"\n")
            skipped, lines = line.size - len(kept) + end, lines[end:]
        lines = kept + lines
        found = last_start(lines)
        if found is not None:
            self.stop = self.position + found + (skipped if found else 0)
            self.stop_lines = self.lines + lines.count(b"\n", 0, found)
            self.inside = False
        self.position += skipped + len(lines)
        self.lines += lines.count(b"\n")
        if self.inside:
            self._stop_here()

    def end(self, size: int, end: End) -> None:
        """Adds the content before the end of a file that is complete."""
        if end == "file" and size > self.position:
            self.position, self.lines = size, self.lines + 1
        if end == "record" and self.position - self.stop > ENDLESS_RECORD_BYTES:
            self.inside = True
        if end != "record" or self.inside:
            self._stop_here()

    def _stop_here(self) -> None:
        self.stop, self.stop_lines = self.position, self.lines

    def segment(self) -> Segment:
        """Returns the range before `stop`. The next range starts there."""
        segment = Segment(self.start, self.stop, self.stop_lines, self.inside)
        self.start, self.lines, self.stop_lines = self.stop, self.lines - self.stop_lines, 0
        return segment
