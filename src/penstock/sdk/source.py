"""Sources: systems that are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.capability import Capability
from penstock.sdk.component import C, Component, Level
from penstock.sdk.format import Format
from penstock.sdk.record import Read

Offset = Mapping[str, Any]
"""A position in a whole source, as JSON. Positions never go back."""


class Source(Component[C]):
    """A system that is read. Declare BYTES (payloads, decoded by `format`) or ROWS."""

    unit: ClassVar[str] = "records"
    """What `ReplayableSource.lag` counts: records, bytes, files ..."""

    format: Format[Any] | None = None
    """The node's format, constructed; set by the planner before anything but `check` is called.

    The engine decodes for sources that declare BYTES; those that declare ROWS and hold encoded
    data (files) use it themselves.
    """

    columns: pa.Schema | None = None
    """The declared or pinned columns, set by the planner before a range is read.

    A source that declares ROWS delivers exactly these.
    """

    metadata_columns: Mapping[str, str] = {}
    """For each column that the user asked for, the name of the metadata that it holds."""

    def format_for(self) -> str | None:
        """The type of format where the node names none; None where none is needed or implied."""
        return "json" if Capability.BYTES in self.capabilities else None

    def schema(self) -> pa.Schema | None:
        """The columns of the rows, for sources that declare ROWS.

        None when a schema must be declared or can only be inferred (see `infer`). Sources that
        declare BYTES keep this default.
        """
        return None

    def infer(self) -> pa.Schema | None:
        """The columns found by looking at a sample, for ROWS sources; None if there is no data."""
        return None

    def sample(self, most: int) -> pa.BinaryArray:
        """At most `most` payloads from the beginning, for inferring a format's schema."""
        return pa.array([], pa.binary())

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        """A bad record once more, as it is in the dead letters: rows of `columns`.

        Raises RecordError if it is bad still.
        """
        if self.format is None or self.columns is None:
            raise DecodeError("this source's records cannot be read again", code="not-replayable")
        rows, _, failures = self.format.decode(pa.array([payload], pa.binary()), self.columns)
        for failure in failures:
            raise failure.error
        return rows

    def metadata(self) -> pa.Schema:
        """The metadata columns on offer, by their short names (`topic`, `path`, ...)."""
        return pa.schema([])

    @property
    def guarantee(self) -> Level:
        """How often a record comes into Penstock, whatever is killed."""
        return "exactly once" if Capability.REPLAY in self.capabilities else "at most once"

    def bounded(self) -> bool:
        """Whether the input ends, as configured."""
        return False


class ReplayableSource(Source[C]):
    """A source whose ranges can be read again and give the same rows.

    `initial`, `latest`, `advance` and `partitions` are called in one process for each query, and
    `commit` in another, all on the driver's machine; `read` is called on copies in tasks. Another
    copy may be asked for `initial`, `latest` and `lag` before a run, to see how much is waiting.
    """

    acknowledges: str | None = None

    @abstractmethod
    def initial(self) -> Offset:
        """Where a pipeline without state begins."""

    @abstractmethod
    def latest(self, start: Offset) -> Offset:
        """The end of what is there now, at or after `start`. Does not block."""

    def advance(self, start: Offset, end: Offset) -> Offset:
        """The end of the next batch: `end`, or earlier where the options limit a batch.

        Later than `start` whenever `end` is.
        """
        return end

    @abstractmethod
    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        """What can be read in parallel between the two: picklable values for `read`."""

    @abstractmethod
    def read(self, partition: Any, read: Read) -> Iterator[pa.RecordBatch]:
        """The records of one partition.

        BYTES: batches with the columns of `PAYLOAD`, then those of `read.metadata`.
        ROWS: batches with the columns of the declared schema, then those of `read.metadata`.
        """

    def commit(self, end: Offset) -> None:
        """Everything before `end` has been written to all sinks: acknowledge, report, let go.

        Also called when a run begins, with the position where it resumes. Raises Transient or
        Permanent if the system could not be told, which hinders nothing else.
        """

    def earlier(self, one: Offset, other: Offset) -> Offset:
        """The position up to which both have come; this one takes the smaller numbers."""
        return {key: _smaller(one[key], other[key]) for key in one if key in other}

    def lag(self, at: Offset, latest: Offset) -> int | None:
        """How much is waiting between the two, in the source's own unit; None if unknown."""
        return None


def _smaller(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return {key: _smaller(one[key], other[key]) for key in one if key in other}
    return min(one, other) if isinstance(one, int | float) else one
