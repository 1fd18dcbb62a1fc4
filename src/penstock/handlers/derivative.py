"""The handler `derivative`: derivatives of columns by time, from the points around each row.

Input: a time column and columns of numbers. Output: the same rows with a DOUBLE column for each
derivative: the one of the polynomial through all points within `neighbourhood` of the time of the
row, in units of 1/unit^order. Order 0 is the value of the polynomial. Rows of a batch are in the
order of their times, and after those of earlier batches. A row is output once a later row is beyond
its neighbourhood, or at once with `no_wait`. A call has one output batch, maybe without rows, and
more if the columns change.

The derivative is null if there are less than order + 1 points, or if two points have the same time.
A null value is no point. Rows without a time are dropped.

State: the rows that wait, and the points that later rows need. Errors: no time column of type
TIMESTAMP, a missing column, a column that is not a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import Role, with_role
from penstock.handlers.points import Points
from penstock.handlers.rows import (
    TICKS_PER_SECOND,
    Indexes,
    append_column,
    column,
    concatenate,
    sort_by_time,
    ticks,
    time_values,
)
from penstock.handlers.state import State


@dataclass(frozen=True)
class DerivativeCase:
    """The column of the values, and the order of the derivative."""

    column: str
    order: int = 1


class Derivative(Handler):
    """Appends derivatives. `unit` and `neighbourhood` are nanoseconds, `cases` are by result."""

    def __init__(
        self, cases: Mapping[str, DerivativeCase], unit: int, neighbourhood: int,
        *, no_wait: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if not cases:
            raise HandlerError.invalid("Expected at least one derivative case")
        if unit <= 0 or neighbourhood < 0:
            raise HandlerError.invalid(
                f"unit must be positive and neighbourhood not negative, found {unit} and "
                f"{neighbourhood}"
            )
        self._cases, self._unit, self._no_wait = cases, unit, no_wait
        self._neighbourhood = neighbourhood
        columns = dict.fromkeys(case.column for case in cases.values())
        self._points = {name: Points.none() for name in columns}
        self._waiting: Batches = []
        self._latest: int | None = None

    def state(self) -> State:
        points = [[each.times, each.values] for each in self._points.values()]
        return {"points": points, "waiting": self._waiting, "latest": self._latest}

    def restore(self, state: State) -> None:
        points = [Points(*each) for each in state["points"]]
        self._points = dict(zip(self._points, points, strict=True))
        self._waiting, self._latest = list(state["waiting"]), state["latest"]

    def handle(self, batch: pa.RecordBatch) -> Batches:
        rows = sort_by_time(self.drop_null_times(batch))
        times = _nanoseconds(rows)
        added = {name: _points(rows, name, times) for name in self._points}
        for result in self._cases:
            if result in rows.schema.names:
                raise HandlerError.missing(f"Duplicate of column names: {result}")
        if rows.num_rows:
            latest = int(times[-1])
            self._latest = latest if self._latest is None else max(self._latest, latest)
            self._waiting.append(rows)
            self._points = {name: self._points[name].with_points(added[name]) for name in added}
        return self._output() or [self._extended(rows.slice(0, 0))]

    def _output(self) -> Batches:
        """Returns the rows that do not wait, and drops the points that no later row needs."""
        complete, waiting = Batches(), Batches()
        first = self._latest
        for rows in self._waiting:
            times = _nanoseconds(rows)
            ready = 0 if waiting else self._ready(times)
            if ready:
                complete.append(rows.slice(0, ready))
            if ready < rows.num_rows:
                waiting.append(rows.slice(ready))
                first = min(first or 0, int(times[ready]))
        outputs = [self._extended(rows) for rows in concatenate(complete)]
        self._waiting = waiting
        if first is not None:
            start = first - self._neighbourhood
            self._points = {name: each.since(start) for name, each in self._points.items()}
        return outputs

    def finish(self) -> Batches:
        waiting, self._waiting = self._waiting, []
        return [self._extended(rows) for rows in concatenate(waiting)]

    def _ready(self, times: Indexes) -> int:
        """Returns the number of sorted times whose neighbourhood is complete."""
        assert self._latest is not None
        if self._no_wait:
            return len(times)
        return int(np.searchsorted(times, max(self._latest - self._neighbourhood, -(2**63))))

    def _extended(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows with their derivatives."""
        times = _nanoseconds(rows)
        for result, case in self._cases.items():
            points = self._points[case.column]
            found = points.derivatives(times, case.order, self._unit, self._neighbourhood)
            field = with_role(pa.field(result, pa.float64()), Role.FIELD)
            rows = append_column(rows, field, found)
        return rows


def _nanoseconds(rows: pa.RecordBatch) -> Indexes:
    times = time_values(rows)
    factor = 1_000_000_000 // TICKS_PER_SECOND[times.type.unit]
    values = ticks(times)
    if factor == 1:
        return values
    limit = (2**63 - 1) // factor
    if ((values > limit) | (values < -limit)).any():
        raise HandlerError.type("Overflow while converting durations")
    return values * factor


def _points(rows: pa.RecordBatch, name: str, times: Indexes) -> Points:
    """Returns the points of a column. Raises HandlerError."""
    values = column(rows, name)
    if values is None:
        raise HandlerError.missing(
            f"Concatenated RecordBatch has not column with name {name} to calculate derivative"
        )
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise HandlerError.type(f"Derivative requires numeric type, but {kind} type provided")
    numbers = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if not values.null_count:
        return Points(times, numbers)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return Points(times[valid], numbers[valid])
