"""How much a sink is given in one go, and how fast."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

SMOOTH = 10
"""In how many portions the rows of a second are written where there is a rate."""


@dataclass(frozen=True)
class Portion:
    """The most `rows` and `bytes` of payload of one go, and the rows a second; None: no limit."""

    rows: int | None = None
    bytes: int | None = None
    rate: float | None = None

    @classmethod
    def of(cls, rows: int | None, bytes_: int | None, rate: float | None) -> Portion:
        """With a rate, no more rows than let it be kept smoothly."""
        if rate is not None:
            smooth = max(1, int(rate / SMOOTH))
            rows = min(rows or smooth, smooth)
        return cls(rows, bytes_, rate)

    def shared(self, writers: int) -> Portion:
        """For each of several writers that work side by side."""
        return self if self.rate is None else replace(self, rate=self.rate / writers)


UNLIMITED = Portion()


def gathered(batches: Iterator[pa.RecordBatch], most: int | None) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `most`, and a last one of those that are left."""
    if most is None:
        yield from batches
        return
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= most:
            whole = pa.concat_batches(waiting)
            end = count - count % most
            for at in range(0, end, most):
                yield whole.slice(at, most)
            waiting, count = [whole.slice(end)], count - end
    if count:
        yield pa.concat_batches(waiting)


def cut(rows: int, payloads: pa.BinaryArray | None, most: int | None) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose payloads have at most so many bytes; one that has more is alone."""
    start = size = 0
    if payloads is not None and most is not None:
        for at, length in enumerate(pc.fill_null(pc.binary_length(payloads), 0).to_pylist()):
            if at > start and size + length > most:
                yield start, at
                start, size = at, 0
            size += length
    if start < rows:
        yield start, rows


class Pace:
    """Lets so many rows a second pass, from when it is made; all at once without a rate."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._free = time.monotonic()

    def await_turn(self, rows: int) -> None:
        """Returns when the rows before these have had their time."""
        if self._rate is None:
            return
        now = time.monotonic()
        if self._free > now:
            time.sleep(self._free - now)
        self._free = max(self._free, now) + rows / self._rate
