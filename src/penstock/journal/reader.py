"""Readers of journals: first and last position, ranges, and removal of old segments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.journal.chunks import Chunk, ReadChunks, decode_chunk
from penstock.journal.mark import MarkValues
from penstock.journal.segment import CORRUPT_HINT, Segment, list_segments
from penstock.journal.starts import writer_of

MAX_BATCH_BYTES = 16 << 20
"""The maximum size of a batch with more than one record."""


def read_chunks(directory: Path, start: int, end: int) -> Iterator[Chunk]:
    """Yields chunks with the records of a journal from `start` to before `end`."""
    return JournalReader(directory).chunks(start, end)


class JournalReader:
    """A reader of the journal in a directory.

    With `chunks_of` the directory is on another machine, and only `read` is possible.
    """

    def __init__(self, directory: Path, chunks_of: ReadChunks = read_chunks) -> None:
        self.directory, self._chunks_of = directory, chunks_of

    def begin(self) -> int:
        """Returns the position of the oldest record, or of the next record in an empty journal."""
        segments = list_segments(self.directory)
        return segments[0].first if segments else 0

    def end(self) -> int:
        """Returns the position after the last durable record."""
        return max(self._read_mark().end, self.begin())

    def check_end(self, position: int) -> None:
        """Raises StateError if the journal ends before `position`, up to which it was read.

        Records that were appended since would have positions that count as read.
        """
        if position <= self.end():
            return
        segments = list_segments(self.directory)
        complete = segments[-1].complete_end() if segments else None
        end = complete[0] if complete else self.begin()
        if end < position:
            raise self._missing_records(end, position)

    def writer_of(self, position: int) -> str | None:
        """Returns the ID of the start that appended the record before a position, if known."""
        return writer_of(self.directory, position)

    def lost(self) -> int:
        """Returns the number of messages dropped since the journal was created."""
        return self._read_mark().lost

    def _read_mark(self) -> MarkValues:
        return MarkValues.read(self.directory)

    def size(self) -> int:
        """Returns the size of the journal on disk in bytes."""
        return sum(segment.size for segment in list_segments(self.directory))

    def ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns the positions from `start` to before `end`, split at segments.

        Raises StateError if the first of them are missing.
        """
        ranges = []
        for segment, after in self._spans(end):
            first, last = max(segment.first, start), min(after, end)
            if first < last:
                ranges.append((first, last))
        first = ranges[0][0] if ranges else end
        if start < first:
            raise self._missing_records(start, first)
        return ranges

    def read(self, start: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yields batches from `start` to before `end`, each with the position of its first record.

        A batch has at most `MAX_BATCH_BYTES`, or one record. Raises StateError if records are
        missing or corrupt.
        """
        position = start
        for chunk in self._chunks_of(self.directory, start, end):
            first, batch = decode_chunk(chunk, start, end)
            if first != position:
                raise self._missing_records(position, first)
            for part in split_batch(batch, MAX_BATCH_BYTES):
                yield position, part
                position += part.num_rows
        if position != end:
            raise self._missing_records(position, end)

    def chunks(self, start: int, end: int) -> Iterator[Chunk]:
        """Yields chunks with the records from `start` to before `end`.

        Raises StateError if records are corrupt.
        """
        for segment, after in self._spans(end):
            if after > start:
                yield from segment.chunks(start, end)

    def remove_before(self, before: int) -> None:
        """Removes the segments whose records are all before a position.

        The last record remains, so that its writer finds it at the next start, in a segment of its
        own: records that were read take no space of the journal. Raises StateError if it is missing
        or corrupt.
        """
        spans = [(segment, after) for segment, after in self._spans(None) if after <= before]
        if spans and spans[-1][1] == self.end():
            segment, after = spans.pop()
            if segment.first < after - 1:
                last, record = next(self.read(after - 1, after))
                Segment(self.directory, last).write_record(record)
                segment.path.unlink(missing_ok=True)
        for segment, _ in spans:
            segment.path.unlink(missing_ok=True)

    def _spans(self, end: int | None) -> Iterator[tuple[Segment, int]]:
        """Yields segments up to `end`, each with the position of the next segment."""
        segments = list_segments(self.directory)
        for number, segment in enumerate(segments):
            if end is not None and segment.first >= end:
                return
            last = number + 1 == len(segments)
            if not last:
                yield segment, segments[number + 1].first
            elif end is not None:
                yield segment, end

    def _missing_records(self, start: int, end: int) -> StateError:
        return StateError(
            f"the journal in {self.directory} has no records {start} to {end - 1}",
            code="corrupt-journal",
            hint=CORRUPT_HINT,
        )


def split_batch(batch: pa.RecordBatch, max_size: int) -> Iterator[pa.RecordBatch]:
    """Yields slices of at most `max_size` bytes, or of one record."""
    if batch.num_rows <= 1 or batch.nbytes <= max_size:
        yield batch
        return
    half = batch.num_rows // 2
    yield from split_batch(batch.slice(0, half), max_size)
    yield from split_batch(batch.slice(half), max_size)
