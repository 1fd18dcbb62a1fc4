"""Sources: systems that are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.capability import Capability
from penstock.sdk.component import C, Component, Level
from penstock.sdk.format import Format
from penstock.sdk.operations import OPERATION_COLUMN, Operation

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

    truncates: bool = False
    """Whether a batch may begin with the removal of all rows, with `carries_operations` (see
    `ReplayableSource.begins_truncated`). The planner then requires sinks that remove them."""

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
