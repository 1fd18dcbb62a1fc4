"""Write limits: the size of one write, and the rate of rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.row_sizes import row_sizes

MERGED_BYTES = 64 << 20
"""The maximum size of batches that are merged for one write."""
WRITES_PER_SECOND = 10
"""The number of writes per second under a rate limit."""


@dataclass(frozen=True)
class WriteLimits:
    """The maximum rows and payload bytes of one write, and rows per second; None: no limit."""

    rows: int | None = None
    bytes: int | None = None
    rate: float | None = None

    @classmethod
    def create(cls, rows: int | None, bytes_: int | None, rate: float | None) -> WriteLimits:
        """Creates limits; a rate limits the rows of one write to a fraction of a second."""
        if rate is not None:
            rows_per_write = max(1, int(rate / WRITES_PER_SECOND))
            rows = min(rows or rows_per_write, rows_per_write)
        return cls(rows, bytes_, rate)

    def divide_among(self, writers: int) -> WriteLimits:
        """Returns the limits of one of several concurrent writers."""
        return self if self.rate is None else replace(self, rate=self.rate / writers)


UNLIMITED = WriteLimits()


def rebatch(
    batches: Iterable[pa.RecordBatch], max_rows: int | None, max_bytes: int = MERGED_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yields the same rows in batches of `max_rows`, or of fewer rows that have `max_bytes`.

    A larger row is alone. The division depends on the rows only, not on that of `batches`: a
    repeated batch is divided in the same way.
    """
    if max_rows is None:
        yield from batches
        return
    pending: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        ends = np.cumsum(row_sizes(batch))
        start = before = 0
        while start < batch.num_rows:
            fitting = int(np.searchsorted(ends, before + max_bytes - size, "right")) - start
            taken = max(min(fitting, max_rows - count), 0 if pending else 1)
            if taken:
                pending.append(batch.slice(start, taken))
                start, count = start + taken, count + taken
                before, size = int(ends[start - 1]), size + int(ends[start - 1]) - before
            if start < batch.num_rows or count == max_rows:
                yield _merged(pending)
                pending, count, size = [], 0, 0
    if pending:
        yield _merged(pending)


def _merged(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def split_by_bytes(
    rows: int, payloads: pa.BinaryArray | None, max_bytes: int | None
) -> Iterator[tuple[int, int]]:
    """Yields ranges of rows with at most `max_bytes` of payload; a larger row is alone."""
    start = size = 0
    if payloads is not None and max_bytes is not None:
        for index, length in enumerate(pc.fill_null(pc.binary_length(payloads), 0).to_pylist()):
            if index > start and size + length > max_bytes:
                yield start, index
                start, size = index, 0
            size += length
    if start < rows:
        yield start, rows


class RateLimiter:
    """A limiter of rows per second. None is no limit."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next_write = time.monotonic()

    def await_turn(self, rows: int) -> None:
        """Waits until the rate allows the next rows."""
        if self._rate is None:
            return
        now = time.monotonic()
        if self._next_write > now:
            time.sleep(self._next_write - now)
        self._next_write = max(self._next_write, now) + rows / self._rate
