"""Sources of the past: the records of another source up to an offset."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.sdk import Config, Offset, Read, ReplayableSource

BATCH = "batch"
"""The key of an offset that is the number of a batch."""


class PastSource(ReplayableSource[Config]):
    """The records of `source` from the offset `start` to the offset `end`.

    The source keeps its state and its acknowledged offset: no method changes them.
    """

    def __init__(self, source: ReplayableSource[Any], start: Offset, end: Offset) -> None:
        self._source, self._start, self._end = source, start, end
        super().__init__(source.config, source.context)
        self.format, self.capabilities = source.format, source.capabilities
        self.truncates = source.truncates
        self.metadata_columns: Mapping[str, str] = source.metadata_columns

    @property
    def columns(self) -> pa.Schema | None:
        return self._source.columns

    @columns.setter
    def columns(self, columns: pa.Schema | None) -> None:
        self._source = copy.copy(self._source)
        self._source.columns = columns

    @property
    def lag_unit(self) -> str:  # type: ignore[override]
        return self._source.lag_unit

    def metadata_schema(self) -> pa.Schema:
        return self._source.metadata_schema()

    def is_bounded(self) -> bool:
        return True

    def initial_offset(self) -> Offset:
        return self._start

    def latest_offset(self, start: Offset) -> Offset:
        return self._end

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        return end if start == end else self._source.limit_batch(start, end)

    def begins_truncated(self, start: Offset, end: Offset) -> bool:
        return self._source.begins_truncated(start, end)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        return self._source.partitions(start, end)

    def read(self, partition: Any, read: Read) -> Iterator[pa.RecordBatch]:
        return self._source.read(partition, read)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return self._source.min_offset(first, second)

    def lag(self, current: Offset, latest: Offset) -> int | None:
        return self._source.lag(current, latest)

    def close(self) -> None:
        self._source.close()


class PastBatchesSource(PastSource):
    """The records of `source` in given batches, between offsets from `bounds`.

    The offset is the number of the batch, so that all sources of a query have the same batches.
    """

    def __init__(self, source: ReplayableSource[Any], bounds: Sequence[Offset]) -> None:
        super().__init__(source, {BATCH: 0}, {BATCH: len(bounds) - 1})
        self.bounds = tuple(bounds)

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        return {BATCH: min(start[BATCH] + 1, end[BATCH])}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        first, last = self.bounds[start[BATCH]], self.bounds[end[BATCH]]
        return [] if first == last else self._source.partitions(first, last)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return min(first, second, key=lambda offset: int(offset[BATCH]))

    def lag(self, current: Offset, latest: Offset) -> int | None:
        first, last = self.bounds[current[BATCH]], self.bounds[latest[BATCH]]
        return self._source.lag(first, last)
