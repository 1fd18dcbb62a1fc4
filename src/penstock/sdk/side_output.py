"""Side outputs: observers of the rows and the progress of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.sdk.component import C, Component


@dataclass(frozen=True)
class ObservedRows:
    """Copies of the rows of a node in one batch of a query, after all sinks have written it.

    `count` is the number of all rows; `rows` has at most `max_rows` of them.
    """

    node: str
    query: str
    batch: int
    rows: pa.Table
    count: int


class SideOutput(Component[C]):
    """An observer of the rows and the progress of nodes, which changes and stops nothing.

    Runs in the process of the run, in a thread of its own. Its rows wait in a queue of
    `max_queued` batches; the batches that do not fit are counted as missed. A batch is passed once
    all sinks of its query have written it, in the order of its query. After a crash it may be
    passed again, with the same number, or not at all. An exception is logged, counted and shown by
    `penstock status`; the next batch is passed as usual. At the end of a run the remaining batches
    are passed within five seconds.
    """

    max_queued: int = 100
    """The maximum number of batches that wait."""

    def open(self) -> None:
        """Prepares the side output, before its first batch. Called again after it has failed."""

    @abstractmethod
    def observe(self, rows: ObservedRows) -> None:
        """Handles the rows of a batch."""

    def progress(self, metrics: Mapping[str, Any]) -> None:
        """Handles the metrics of the run, as in `penstock status --json`, about every second."""
