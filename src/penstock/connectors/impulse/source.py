"""The source of counted rows."""

from __future__ import annotations

import pyarrow as pa
from pydantic import Field

from penstock.sdk import Duration
from penstock.sdk.kit.clock import Clock, Start
from penstock.sdk.kit.paced import PacedConfig, PacedSource
from penstock.sdk.kit.random import Integers


class ImpulseSourceConfig(PacedConfig):
    subtasks: int = Field(default=1, ge=1)
    """How many counters there are, which rows belong to in turn: those of `subtask_index`."""
    start: Start = "now"
    """The time of the first row; `now` is the time when rows are due, as a clock on the wall."""
    interval: Duration | None = Field(default=None, gt=0)
    """The time between two rows; as the rate says if left out, or one second."""


class ImpulseSource(PacedSource[ImpulseSourceConfig]):
    """Counts at a rate: for tests and load.

    Rows have the columns `counter`, which grows by one from row to row of a `subtask_index`, and
    `subtask_index`; the metadata `time` is their event time. A row depends on nothing but the
    options and its number, so rows can be read again.

    ```yaml
    type: impulse
    rate: 1000
    interval: 1s
    metadata: {at: time}
    ```
    """

    def schema(self) -> pa.Schema:
        return pa.schema([("counter", pa.int64()), ("subtask_index", pa.int64())])

    def made(self, rows: Integers, clock: Clock, wanted: frozenset[str] | None) -> pa.RecordBatch:
        counter, subtask = divmod(rows, self.config.subtasks)
        return pa.record_batch([pa.array(counter), pa.array(subtask)], schema=self.schema())

    def times(self, rows: Integers, clock: Clock) -> Integers:
        return clock.told(self.config.start, self.config.interval).at(rows)
