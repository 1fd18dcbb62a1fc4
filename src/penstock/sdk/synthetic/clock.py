"""Clock of generated rows: a time for each row number."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.sdk.synthetic.random import Integers

StartTime = dt.datetime | Literal["now"]
"""The time of the first row; `now` is the wall clock time at which rows are due."""


@dataclass(frozen=True)
class Clock:
    """A linear clock: the time of row `row`, and the step between rows, in microseconds."""

    row: int = 0
    time: int = 0
    step: float = 1_000_000.0

    def at(self, rows: Integers) -> Integers:
        """Returns the time of each row in microseconds since 1970."""
        due: Integers = self.time + ((rows - self.row) * self.step).astype(np.int64)
        return due

    def with_options(self, start_time: StartTime, step: float | None) -> Clock:
        """Returns a clock with another start or step. None keeps the step of this clock.

        `step` is in seconds; a time without a zone is UTC.
        """
        micros = self.step if step is None else step * 1e6
        if start_time == "now":
            return Clock(self.row, self.time, micros)
        zoned = start_time if start_time.tzinfo else start_time.replace(tzinfo=dt.UTC)
        return Clock(0, round(zoned.timestamp() * 1e6), micros)
