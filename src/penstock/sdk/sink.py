"""Sinks: systems that are written to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from penstock.sdk.capability import Capability
from penstock.sdk.component import C, Component, Level
from penstock.sdk.format import Format
from penstock.sdk.record import Failure


@dataclass(frozen=True)
class BatchId:
    """One batch of one query. A batch that is written again has the same id.

    `query` changes when a pipeline starts over with `--fresh`; `number` grows by one.
    """

    query: str
    number: int


Mode = Literal["append", "upsert", "replace"]

Receipt = Mapping[str, Any]
"""What a writer says of what it wrote, as JSON; `rows` and `bytes` are counted by the engine."""


class Writer(ABC):
    """Writes one partition of one batch, in a task."""

    @abstractmethod
    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        """Takes rows, and for sinks that declare BYTES each row's payload beside it.

        Returns the rows that the system refuses for good; they go to the dead letters. Raises
        Transient or Permanent when it is the system that fails.
        """

    @abstractmethod
    def commit(self) -> Receipt:
        """Makes what was written durable, as far as one task can."""

    def abort(self) -> None:  # noqa: B027
        """The task failed: nothing of it should become visible. May be called at any time."""


class Sink(Component[C]):
    """A system that is written to. Declare BYTES (rows encoded by `format`) or ROWS."""

    parallelism = "a partition of the batch"
    most_rows: ClassVar[int | None] = None
    """The most rows of one call of `Writer.write` where the node's `batch` says nothing."""

    format: Format[Any] | None = None
    """The node's format, constructed; set by the planner before `recover`, `open` and `writer`.

    The engine encodes for sinks that declare BYTES; those that declare ROWS and write encoded
    data (files) use it themselves.
    """

    mode: Mode = "append"
    """What a row does to those that are there; set by the planner, like `primary_key`.

    Others than `append` only where UPSERT is declared.
    """

    primary_key: tuple[str, ...] = ()
    """The columns that identify a row."""

    @property
    def guarantee(self) -> Level:
        """How often a row arrives, whatever is killed."""
        if Capability.EXACTLY_ONCE in self.capabilities:
            return "exactly once"
        return "at most once" if self.acknowledges is None else "at least once"

    def accepts(self, columns: pa.Schema) -> None:
        """Raises UserError if rows of these columns cannot be written, whatever they hold."""
        if self.format is not None:
            self.format.encode(self.encoded(pa.RecordBatch.from_pylist([], columns)))

    def encoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that the format makes payloads of, for sinks that declare BYTES."""
        return rows

    def division(self, columns: pa.Schema) -> tuple[int, Sequence[str]] | None:
        """How many writers a batch has, and the columns whose values choose the writer.

        For sinks whose writers each commit for themselves: when a batch is repeated, each row
        comes to the same writer. None: the rows come as they are.
        """
        return None

    def format_for(self) -> str | None:
        """The type of format where the node names none; None where none is needed."""
        return "json" if Capability.BYTES in self.capabilities else None

    def open(self) -> Any:
        """A client, made once per worker process and kept between batches.

        After a batch that failed the next one gets another; if the client has a method `close`,
        that is called then, beside the work.
        """
        return None

    @abstractmethod
    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        """A writer of one partition of `batch`; `schema` is that of the rows to come."""

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """All partitions are committed: make the batch visible. On the driver.

        Idempotent, and called again after a crash between the writers and the end of the batch.
        """

    def prepare(self, columns: pa.Schema) -> None:
        """Called on the driver before the first rows are written, with the columns they have."""
        if self.format is not None:
            self.format.prepare(self.encoded(pa.RecordBatch.from_pylist([], columns)).schema)

    def recover(self) -> None:
        """Called on the driver before the first batch of a run: tidy up after a crash."""

    def tick(self) -> None:
        """Called on the driver about once a second, between batches and when none come.

        For what is due by the clock (a file that is rolled by age). Never while a batch is under
        way. An error is told in the log, and the next tick tries again.
        """

    def complete(self) -> None:
        """Called on the driver when a run ends in good order: close what was kept open."""
