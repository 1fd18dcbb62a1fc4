"""Reading a journal: where it begins and ends, ranges of it, and letting go of what is done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.journal.mark import Marked
from penstock.journal.segment import Segment, segments


class JournalReader:
    """The journal in a directory, as seen by a process that does not write it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def begin(self) -> int:
        """The position of the oldest record that is there, or that the first will have."""
        found = segments(self.directory)
        return found[0].first if found else 0

    def end(self) -> int:
        """The position after the last durable record."""
        return max(self._marked().end, self.begin())

    def lost(self) -> int:
        """How many messages could not be taken, since the journal was made."""
        return self._marked().lost

    def _marked(self) -> Marked:
        return Marked.of(self.directory)

    def ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """The positions from `start` to before `end`, cut where the segments are."""
        found = []
        for segment, after in self._spans(end):
            first, last = max(segment.first, start), min(after, end)
            if first < last:
                found.append((first, last))
        return found

    def read(self, start: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The records from `start` to before `end`, in order, each batch with its first position.

        Raises StateError where some of them are gone or damaged.
        """
        at = start
        for segment, after in self._spans(end):
            if after <= start:
                continue
            for first, batch in segment.read(start, end):
                if first != at:
                    raise self._gone(at, first)
                yield first, batch
                at = first + batch.num_rows
        if at != end:
            raise self._gone(at, end)

    def forget(self, before: int) -> None:
        """Removes the segments all of whose records come before that position."""
        for segment, after in list(self._spans(None)):
            if after <= before:
                segment.path.unlink(missing_ok=True)

    def _spans(self, end: int | None) -> Iterator[tuple[Segment, int]]:
        """The segments, each with the position where the next begins; the last is open."""
        found = segments(self.directory)
        for number, segment in enumerate(found):
            if end is not None and segment.first >= end:
                return
            last = number + 1 == len(found)
            if not last:
                yield segment, found[number + 1].first
            elif end is not None:
                yield segment, end

    def _gone(self, start: int, end: int) -> StateError:
        return StateError(
            f"the journal in {self.directory} lacks the records {start} to {end - 1}",
            code="broken-journal",
        )
