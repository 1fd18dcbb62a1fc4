"""Sources: systems that are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.capability import Capability
from penstock.sdk.component import C, Component, Level
from penstock.sdk.format import Format
from penstock.sdk.operations import OPERATION_COLUMN, Operation
from penstock.sdk.record import Read

Offset = Mapping[str, Any]
"""The offset of a whole source as JSON. Offsets never decrease."""


_PLANNED = (
    "format", "columns", "primary_key", "operation_column", "metadata_columns", "follows_schema",
)  # fmt: skip
"""The attributes of a source that the planner sets."""
_SAMPLE = 1000
"""The number of payloads in a sample."""


class Source(Component[C]):
    """A system that is read. Declare BYTES (payloads, decoded by `format`) or ROWS."""

    lag_unit: ClassVar[str] = "records"
    """The unit of `ReplayableSource.lag`: records, bytes, files ..."""

    format: Format[Any] | None = None
    """The node's format, set by the planner before any method but `check` is called.

    The engine decodes for sources that declare BYTES. Sources that declare ROWS and hold encoded
    data (files) call the format themselves.
    """

    columns: pa.Schema | None = None
    """The declared or pinned columns, set by the planner before a range is read.

    A source that declares ROWS returns exactly these columns.
    """

    primary_key: tuple[str, ...] = ()
    """The columns that identify a row, set by the planner."""

    declares_primary_key: bool = False
    """Whether the system may declare a primary key (see `infer_primary_key`)."""

    carries_operations: bool = False
    """Whether rows are changes, for sources that declare ROWS. The planner then appends the
    operation column to `columns`; `read` returns its values (see `Operation`)."""

    has_complete_changes: bool = False
    """Whether each update and delete has the whole row before, with `carries_operations`."""

    deletes_by_key: bool = False
    """Whether records without a value are deletes of the row with the record's key.

    The source then yields the column `KEY` after the metadata columns, and `key_format` decodes it
    into the primary key.
    """

    key_format: str = "text"
    """The format of `KEY` (see `sdk.keys`)."""

    operation_column: str = OPERATION_COLUMN
    """The operation column, with `deletes_by_key` or `carries_operations`. Set by the planner."""

    metadata_columns: Mapping[str, str] = {}
    """The metadata name of each requested metadata column."""

    follows_schema: bool = False
    """Whether `columns` are inferred, so that they follow changes of the schema (see
    `ReplayableSource.schema_change`). Set at the start of a run."""

    locates_rows: ClassVar[bool] = False
    """Whether `read` returns the origin and the position of each row, as the metadata columns
    `origin` and `position`, if `Read.metadata` lists them. For sources that declare ROWS."""

    def with_state(self, state: Path) -> Self:
        """Returns a new source of the same node that keeps its state in another directory."""
        new = type(self)(self.config, replace(self.context, state=state))
        for name in _PLANNED:
            setattr(new, name, getattr(self, name))
        return new

    def default_format(self) -> str | None:
        """Returns the format type of a node without `format`; None without a default."""
        return "json" if Capability.BYTES in self.capabilities else None

    def check_format(self) -> None:
        """Checks that the source can read `format`, which may be None. Raises PlanError.

        Called before a run, without external systems.
        """

    def schema(self) -> pa.Schema | None:
        """Returns the columns of the rows, for sources that declare ROWS.

        None if the schema must be declared or inferred (see `infer_schema`). Sources that declare
        BYTES keep this default.
        """
        return None

    def infer_schema(self) -> pa.Schema | None:
        """Infers the columns from a sample, for ROWS sources; None if there is no data."""
        return None

    def infer_primary_key(self) -> tuple[str, ...]:
        """Returns the primary key that the system declares, or no columns.

        Called before the first run if the pipeline declares no key, with `declares_primary_key`.
        Raises Transient or Permanent.
        """
        return ()

    def sample(self, max_records: int) -> pa.BinaryArray:
        """Returns the first payloads, at most `max_records`, to infer a format's schema."""
        return pa.array([], pa.binary())

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        """Decodes the payload of a dead letter again into rows of `columns`.

        Raises RecordError if decoding fails again.
        """
        if self.format is None or self.columns is None:
            raise DecodeError(
                "dead letters of this source cannot be replayed", code="not-replayable"
            )
        columns = self.columns
        is_update = self.deletes_by_key and not self.format.carries_operations
        place = columns.get_field_index(self.operation_column) if is_update else -1
        if is_update:
            columns = columns.remove(place)
        rows, _, failures = self.format.decode(pa.array([payload], pa.binary()), columns)
        for failure in failures:
            raise failure.error
        if is_update:
            operations = pa.repeat(pa.scalar(Operation.UPDATE.value), rows.num_rows)
            rows = rows.add_column(place, self.columns.field(place), operations)
        return rows

    def decode_with_header(
        self, payload: bytes, origin: str, position: int, header: bytes
    ) -> pa.RecordBatch:
        """Decodes the payload of a dead letter that was rejected with a header, as `decode`."""
        return self.decode(payload, origin, position)

    def metadata_schema(self) -> pa.Schema:
        """Returns the available metadata columns under their short names (`topic`, `path`, ...)."""
        return pa.schema([])

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        """Returns the metadata of the record of a dead letter, by their short names.

        Metadata that `origin` and `position` do not determine are missing. They are null in a
        replay.
        """
        return {"origin": origin, "position": position}

    def adds_operations(self) -> bool:
        """Returns whether the source adds the operation column to its rows."""
        carries = self.format is not None and self.format.carries_operations
        return carries or self.deletes_by_key or self.carries_operations

    def completes_changes(self) -> bool:
        """Returns whether each update and delete has the whole row before."""
        completes = self.format is not None and self.format.has_complete_changes
        return completes or self.has_complete_changes

    def columns_of_sample(self) -> pa.Schema | None:
        """Infers the columns from a sample, of rows or of payloads; None if there is no data."""
        if Capability.ROWS in self.capabilities:
            return self.infer_schema()
        if self.format is None:
            return None
        return self.format.infer_schema(self.format.records(self.sample(_SAMPLE)).texts)

    @property
    def guarantee(self) -> Level:
        """The delivery guarantee from the system to Penstock."""
        return "exactly once" if Capability.REPLAY in self.capabilities else "at most once"

    def prepare_lookup(self) -> None:
        """Prepares the source to be read as a lookup table, for a source that declares LOOKUP.

        Called by the planner, which has set `primary_key`. Raises PlanError if the options do not
        describe a table.
        """

    def reads_once(self) -> bool:
        """Returns whether committed records are removed, so that only one query may read them."""
        return False

    def is_bounded(self) -> bool:
        """Returns whether the configured input ends."""
        return False


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
