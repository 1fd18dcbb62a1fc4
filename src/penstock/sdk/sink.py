"""Sinks: systems that are written to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.capability import Capability
from penstock.sdk.component import C, Component, Level
from penstock.sdk.format import Format
from penstock.sdk.record import Failure
from penstock.sdk.schema_changes import SchemaChanges


@dataclass(frozen=True)
class BatchId:
    """One batch of one query. A batch that is written again has the same id.

    `query` changes when the state is reset with `--fresh`; `number` grows by one. `content` is a
    digest of the offsets between which the batch reads its sources, empty if they are unknown. A
    sink that recognises a committed batch stores number and content (see `Sink.last_batch`).

    With `truncates` a sink that declares TRUNCATE removes all rows of the target before it writes
    those of the batch, also if the batch has none. A repeated batch has the same value.
    """

    query: str
    number: int
    content: str = ""
    truncates: bool = field(default=False, compare=False)


Mode = Literal["append", "upsert", "replace"]

Receipt = Mapping[str, Any]
"""A writer's result as JSON. The engine adds `rows` and `bad`, the numbers of records."""


class Writer(ABC):
    """A writer of one partition of one batch, in a task."""

    @abstractmethod
    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        """Writes rows. `payloads` holds the payload of each row for sinks that declare BYTES.

        `operations` holds the `Operation` of each row for sinks that declare DELETE; None means
        that all rows are inserts. A key occurs once in a batch, and UPDATE_BEFORE never occurs.
        The payload of a deleted row is null; the key of the row may be unknown to the system.

        Returns the rows that the system rejects permanently; they become dead letters. Raises
        Transient or Permanent when the system fails.
        """

    @abstractmethod
    def commit(self) -> Receipt:
        """Makes the written rows durable, as far as one task can."""

    def abort(self) -> None:  # noqa: B027
        """Discards the written rows after a failure of the task. May be called at any time."""


class Sink(Component[C]):
    """A system that is written to. Declare BYTES (rows encoded by `format`) or ROWS."""

    parallelism = "a partition of the batch"
    max_rows_per_write: ClassVar[int | None] = None
    """The maximum number of rows of one call of `Writer.write` without a limit in `batch`.

    Batches are merged up to this number, or 64 MiB. The division depends on the rows only."""
    discards_rows: ClassVar[bool] = False
    """Whether rows are discarded, so that rows of a failed attempt have no effect."""

    recomputed_options: ClassVar[frozenset[str]] = frozenset()
    """The options whose change applies to all rows, as the sink computes its results again."""

    format: Format[Any] | None = None
    """The node's format, set by the planner before `recover`, `open` and `writer` are called.

    The engine encodes for sinks that declare BYTES. Sinks that declare ROWS and write encoded
    data (files) call the format themselves.
    """

    mode: Mode = "append"
    """The effect of a row on existing rows, set by the planner.

    `upsert` requires UPSERT, `replace` requires REPLACE.
    """

    primary_key: tuple[str, ...] = ()
    """The columns that identify a row, set by the planner.

    With mode `upsert` they are declared in the node or inherited from nodes upstream. The engine
    sends all rows of a key to one writer, the last one of each batch only, unless `partitioning`
    chooses the writers.
    """

    uses_primary_key: bool = False
    """Whether `primary_key` is used with each mode, as the key of a record."""

    shows_operations: ClassVar[bool] = False
    """Whether rows keep their operation column, because they are only shown or discarded."""

    @property
    def accepts_operations(self) -> bool:
        """Whether changes can be written with each mode: shown, or carried by the format."""
        return self.shows_operations or (self.format is not None and self.format.carries_operations)

    @property
    def keeps_operations(self) -> bool:
        """Whether the rows that reach a writer have the operation column."""
        return self.shows_operations or (
            self.accepts_operations and Capability.BYTES not in self.capabilities
        )

    @property
    def overwriting_columns(self) -> Sequence[str] | None:
        """The columns by which a row overwrites an earlier row, whatever the mode.

        None if all rows are kept; empty if each row overwrites the row before. The engine sends
        rows with the same values to one writer, in source order.
        """
        return None

    @property
    def writes_each_row(self) -> bool:
        """Whether a sink with mode `upsert` receives all rows of a key in a batch.

        The engine sends them to one writer, in source order. By default it sends the last row.
        """
        return False

    @property
    def guarantee(self) -> Level:
        """The delivery guarantee from Penstock to the system."""
        if Capability.EXACTLY_ONCE in self.capabilities:
            return "exactly once"
        return "at most once" if self.acknowledges is None else "at least once"

    def check_schema(self, columns: pa.Schema) -> None:
        """Raises UserError if rows of these columns cannot be written, whatever their values."""
        if self.format is not None:
            self.format.encode(self.encoded(pa.RecordBatch.from_pylist([], columns)))

    def encoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the columns that the format encodes, for sinks that declare BYTES."""
        return rows

    def partitioning(self, columns: pa.Schema) -> tuple[int, Sequence[str]] | None:
        """Returns the number of writers of a batch and the columns that choose the writer.

        For sinks whose writers commit independently: when a batch is repeated, each row reaches
        the same writer. None keeps the partitions of the batch, or with mode `upsert` partitions
        by the primary key.
        """
        return None

    def default_format(self) -> str | None:
        """Returns the format type of a node without `format`; None if no format is needed."""
        return "json" if Capability.BYTES in self.capabilities else None

    def open(self) -> Any:
        """Returns a client, created once per worker process and kept between batches.

        A failed batch discards the client; its method `close`, if any, is called in the background.
        """
        return None

    @abstractmethod
    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        """Returns a writer of one partition of `batch`; `schema` is the schema of the rows."""

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Makes the batch visible after all partitions are committed. Called on the driver.

        Must be idempotent: called again after a crash between the writers and the end of the batch.
        """

    def last_batch(self, query: str) -> BatchId | None:
        """Returns the last committed batch of a query; None if the sink does not store it.

        Called on the driver before the first batch of a query. The engine raises StateError if the
        query continues with this batch and other content, or with an earlier batch. Required for
        EXACTLY_ONCE: a sink that skips batches by their number would lose such a batch.
        """
        return None

    def target_schema(self, columns: pa.Schema) -> pa.Schema | None:
        """Returns the columns of the target for rows of `columns`; None without fixed columns.

        A column that holds the values of the rows in another form has the type of the rows.
        Called on the driver before `prepare`. Reaches the system: raises Transient or Permanent.
        """
        return None

    def change_schema(self, changes: SchemaChanges) -> None:
        """Adds the `missing` columns to the target and widens the `widened` ones.

        Called on the driver before `prepare` if the rows need changes. Must be idempotent. The
        default raises PlanError: the target's columns are fixed.
        """
        can_add = getattr(self.config, "schema_changes", None) == "fail" and not changes.widened
        first = "Set schema_changes: apply" if can_add else "Change the columns of the target"
        raise PlanError(
            f"the rows do not fit the target: {changes}",
            code="target-schema",
            hint=f"{first}, or select and cast columns in a transform.",
        )

    def prepare(self, columns: pa.Schema) -> None:
        """Prepares the target. Called on the driver with the schema of the first rows of a run."""
        if self.format is not None:
            self.format.prepare(self.encoded(pa.RecordBatch.from_pylist([], columns)).schema)

    def recover(self) -> None:
        """Cleans up after a crash. Called on the driver before the first batch of a run."""

    def tick(self) -> None:
        """Does periodic work, such as rolling a file by age. Called on the driver every second.

        Never called while a batch is in progress. An error is logged and the next call retries.
        """

    def complete(self) -> None:
        """Completes the output. Called on the driver when a run ends without a failure."""
