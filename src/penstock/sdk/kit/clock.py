"""When rows are due: a time for each number."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.sdk.kit.random import Integers

Start = dt.datetime | Literal["now"]
"""The time of the first row; `now` is the time when rows are due, as a clock on the wall."""


@dataclass(frozen=True)
class Clock:
    """When row `row` was due, and how many microseconds lie between rows."""

    row: int = 0
    time: int = 0
    step: float = 1_000_000.0

    def at(self, rows: Integers) -> Integers:
        """The time of each row in microseconds since 1970."""
        due: Integers = self.time + ((rows - self.row) * self.step).astype(np.int64)
        return due

    def told(self, start: Start, step: float | None) -> Clock:
        """A clock that goes as options say, and as this one where they say nothing.

        `step` is in seconds; a time without a zone is UTC.
        """
        micros = self.step if step is None else step * 1e6
        if start == "now":
            return Clock(self.row, self.time, micros)
        zoned = start if start.tzinfo else start.replace(tzinfo=dt.UTC)
        return Clock(0, round(zoned.timestamp() * 1e6), micros)
