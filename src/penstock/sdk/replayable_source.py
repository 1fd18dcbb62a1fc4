"""Sources whose ranges can be read again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.sdk.component import C
from penstock.sdk.record import Read
from penstock.sdk.source import Offset, Source


class ReplayableSource(Source[C]):
    """A source whose ranges can be read again and return the same rows.

    `initial_offset`, `latest_offset`, `limit_batch` and `partitions` are called in one process per
    query, `commit` in another process, all on the driver's machine; `read` is called on copies in
    tasks. `initial_offset`, `latest_offset` and `lag` may be called on another copy, to count the
    unread records before a run and during long batches; `partitions` also, to read a batch again.
    """

    acknowledges: str | None = None

    partitioned: bool = False
    """Whether each record is of a partition that has a watermark of its own.

    For sources that declare BYTES. The watermark of the source is the least of its partitions.
    Define `partition_offsets`, and `partition_of` unless the origin of a record is its partition.
    """

    @abstractmethod
    def initial_offset(self) -> Offset:
        """Returns the start offset of a pipeline without state."""

    @abstractmethod
    def latest_offset(self, start: Offset) -> Offset:
        """Returns the current end offset, at or after `start`. Does not block."""

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        """Returns the end offset of the next batch: `end`, or an earlier offset.

        Must be after `start` whenever `end` is.
        """
        return end

    @abstractmethod
    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        """Returns the partitions of a range as picklable values for `read`."""

    @abstractmethod
    def read(self, partition: Any, read: Read) -> Iterator[pa.RecordBatch]:
        """Yields the records of one partition.

        BYTES: batches with the columns of `PAYLOAD`, then the columns of `read.metadata`.
        ROWS: batches with the columns of the declared schema, then the columns of `read.metadata`.
        """

    def partition_offsets(self, offset: Offset) -> Mapping[str, Any]:
        """Returns the part of an offset of each partition, by the name of the partition."""
        return {}

    def partition_of(self, origin: str) -> str:
        """Returns the name of the partition of records with an `origin`."""
        return origin

    def begins_truncated(self, start: Offset, end: Offset) -> bool:
        """Returns whether all rows before a batch are removed, for a source that `truncates`.

        `limit_batch` ends a batch before each such removal. Called on the driver, with the offsets
        of a batch that is written or repeated.
        """
        return False

    def schema_change(self, start: Offset, end: Offset) -> Offset | None:
        """Returns the offset of the first row in a range that needs other columns than `columns`.

        A batch ends there, and its query restarts with `changed_columns`. None without such a row.
        """
        return None

    def changed_columns(self) -> pa.Schema | None:
        """Returns the columns of all rows so far, if they are others than `columns`.

        They have the columns of before, in which values that a row lacks are null.
        """
        return None

    def table_version(self) -> Any:
        """Returns the version of the rows of a lookup table as JSON. Any other version is newer.

        The rows are read again as a whole when the version changes. None: the records after the
        last offset replace rows with their keys.
        """
        return None

    def commit(self, end: Offset) -> None:
        """Acknowledges all records before `end`, which all sinks have committed.

        Also called at the start of a run with the offset at which it resumes. Raises Transient or
        Permanent if the system cannot be reached; the run continues.
        """

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        """Returns the offset that both offsets have reached. Takes the smaller numbers."""
        return {key: _smaller(first[key], second[key]) for key in first if key in second}

    def lag(self, current: Offset, latest: Offset) -> int | None:
        """Returns the backlog between two offsets in `lag_unit`; None if unknown."""
        return None


def _smaller(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping):
        return {key: _smaller(first[key], second[key]) for key in first if key in second}
    return min(first, second) if isinstance(first, int | float) else first
