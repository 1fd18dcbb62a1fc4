"""Impulse: a source of counters at a rate."""

from __future__ import annotations

import pyarrow as pa
from pydantic import Field

from penstock.sdk import Duration
from penstock.sdk.synthetic.clock import Clock, StartTime
from penstock.sdk.synthetic.random import Integers
from penstock.sdk.synthetic.source import SyntheticConfig, SyntheticSource


class ImpulseSourceConfig(SyntheticConfig):
    subtasks: int = Field(default=1, ge=1)
    """The number of counters. Rows belong to the counters (`subtask_index`) in turn."""
    start_time: StartTime = "now"
    """The time of the first row; `now` means the wall clock time at which rows are due."""
    interval: Duration | None = Field(default=None, gt=0)
    """The event time between two rows. By default that of `rate`, or one second."""


class ImpulseSource(SyntheticSource[ImpulseSourceConfig]):
    """Generates counters at a rate, for tests and load.

    Rows have the columns `counter`, which increases by one for each row of a `subtask_index`, and
    `subtask_index`. The metadata `time` is the event time. Rows are a function of the options and
    the row number, so they can be read again.

    ```yaml
    type: impulse
    rate: 1000
    interval: 1s
    metadata: {at: time}
    ```
    """

    def schema(self) -> pa.Schema:
        return pa.schema([("counter", pa.int64()), ("subtask_index", pa.int64())])

    def generate(
        self, rows: Integers, clock: Clock, columns: frozenset[str] | None
    ) -> pa.RecordBatch:
        counter, subtask = divmod(rows, self.config.subtasks)
        return pa.record_batch([pa.array(counter), pa.array(subtask)], schema=self.schema())

    def times(self, rows: Integers, clock: Clock) -> Integers:
        return clock.with_options(self.config.start_time, self.config.interval).at(rows)
