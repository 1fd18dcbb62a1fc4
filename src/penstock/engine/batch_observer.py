"""The observer of the batches of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from penstock.core.errors import PenstockError
from penstock.plan.model import Query


@dataclass(frozen=True)
class Written:
    """The rows, the dead letters and the payload bytes that a sink wrote in a batch.

    `bytes` is None if the sink writes no payloads.
    """

    rows: int
    bad: int
    bytes: int | None = None

    @classmethod
    def of(cls, receipts: Sequence[Mapping[str, Any]]) -> Written:
        """Returns the sum of the receipts of a sink's writers."""
        sizes = [int(receipt["bytes"]) for receipt in receipts if "bytes" in receipt]
        return cls(
            sum(int(receipt["rows"]) for receipt in receipts),
            sum(int(receipt["bad"]) for receipt in receipts),
            sum(sizes) if sizes else None,
        )


class BatchObserver(Protocol):
    """The observer of a run's batches. Called on the driver, by the thread of the query."""

    def on_begin(self, query: Query, number: int) -> None:
        """Handles the start of a batch. Earlier batches are in the commit log."""

    def on_attempt(self, query: Query, number: int, done: frozenset[str]) -> None:
        """Handles an attempt to write a batch. Earlier attempts have written the sinks `done`."""

    def on_search(self, query: Query, number: int) -> None:
        """Handles a step of the search for failing rows. An exception ends the attempt."""

    def on_failure(self, query: Query, sink: str, error: PenstockError) -> None:
        """Handles a failure of a sink on the driver that is tried again."""

    def on_written(self, query: Query, number: int, sink: str, written: Written) -> None:
        """Handles the commit of the batch by a sink."""

    def on_truncated(self, query: Query, number: int) -> None:
        """Handles a batch before which all sinks have removed the rows of their targets."""

    def on_state(self, query: Query, rows: int, size: int) -> None:
        """Handles the state of updating transforms after the batch: its rows and its bytes."""

    def on_unknown_places(self, query: Query, number: int, error: Exception) -> None:
        """Handles a failure of the search for the places of failing rows in their sources."""

    def on_rows(self, query: Query, number: int, node: str, rows: pa.Table, count: int) -> None:
        """Handles the rows of a node for side outputs: copies of some, and the number of all."""

    def on_unobserved(self, query: Query, number: int, node: str, error: Exception) -> None:
        """Handles a failure to copy the rows of a node for side outputs."""

    def tapped(self, query: Query) -> Mapping[str, int]:
        """Returns the nodes whose rows taps copy from the next batch, and the rows of each."""

    def on_tapped(self, query: Query, number: int, node: str, rows: pa.Table) -> None:
        """Handles the copied rows of a node for taps."""

    def on_untapped(self, query: Query, number: int, node: str, error: Exception) -> None:
        """Handles a failure to copy the rows of a node for taps."""

    def on_end(self, query: Query, number: int) -> None:
        """Handles the commit of the batch by all sinks."""
