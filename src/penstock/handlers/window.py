"""The handler `window`: windows of event time for each group.

Input: any columns and a time column. Output: the rows of each closed window, one batch for each run
of rows with equal columns, with the metadata of its first row. Rows are in the order of arrival,
those of a batch in the order of their times. Times are whole seconds.

A window that closes at E has the rows from E - period to before E. The first window closes `every`
seconds after the first time, or `period` seconds with `fill_period`; the others follow `every`
seconds later. A window closes when a row at or after its end arrives. Empty windows have no output.
Rows without a time, and late rows that are before all windows to come, are dropped.

State, for each group: the end of the next window, whether a window has closed, and the rows of
windows to come. Errors: no time column of type TIMESTAMP.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Dropped, Handler
from penstock.handlers.metadata import group_key
from penstock.handlers.rows import Indexes, concatenate, seconds, sort_by_time, time_values
from penstock.handlers.state import State

MAX_DURATION = 2**40
"""The longest window, in seconds."""
LATE = "the time is before all windows that are still open"


class WindowClock:
    """The windows of one group: their clock and their rows."""

    def __init__(self, period: int, every: int, fill_period: bool) -> None:
        self.period = check_duration("period", period)
        self.every = check_duration("every", every)
        self._fill_period = fill_period
        self._end: int | None = None
        self._previous_end = 0
        self._has_closed = False
        self._buffer: Batches = []
        self._times: list[Indexes] = []

    def state(self) -> State:
        """Returns the values of the clock."""
        return {
            "period": self.period,
            "every": self.every,
            "end": self._end,
            "previous_end": self._previous_end,
            "has_closed": self._has_closed,
            "buffer": self._buffer,
        }

    def restore(self, state: State) -> None:
        """Sets the values that `state` has returned."""
        self.period, self.every = state["period"], state["every"]
        self._end, self._previous_end = state["end"], state["previous_end"]
        self._has_closed, self._buffer = state["has_closed"], list(state["buffer"])
        self._times = [seconds(time_values(batch)) for batch in self._buffer]

    def set_period(self, period: int, time: int) -> None:
        """Changes the period at a time. The end of the first window moves, unless to the past."""
        if not self._has_closed and self._fill_period:
            self._move(period - self.period, time)
        self.period = period

    def set_every(self, every: int, time: int) -> None:
        """Changes the distance at a time. The end of the next window moves, unless to the past."""
        if self._has_closed or not self._fill_period:
            self._move(every - self.every, time)
        self.every = every

    def _move(self, difference: int, time: int) -> None:
        if self._end is not None and self._end + difference >= time:
            self._end += difference

    def add(self, batch: pa.RecordBatch) -> tuple[Batches, pa.RecordBatch]:
        """Adds rows in the order of their times. Returns the closed windows, and the late rows."""
        times = seconds(time_values(batch))
        end = self._end
        if end is None:
            self._previous_end = int(times[0])
            end = self._previous_end + (self.period if self._fill_period else self.every)
        late = _position(times, min(end - self.period, self._previous_end))
        start, closed = late, Batches()
        while start < len(times) and int(times[-1]) >= end:
            split = max(_position(times, end), start)
            self._push(batch, times, start, split)
            self._drop_before(end - self.period)
            closed += concatenate(self._buffer)
            self._has_closed, self._previous_end = True, end
            end += self.every
            self._drop_before(end - self.period)
            if not self._buffer:
                end += max(int(times[split]) - end + self.every, 0) // self.every * self.every
                self._previous_end = end - self.every
            start = max(split, _position(times, end - self.period))
        self._push(batch, times, start, len(times))
        self._end = end
        return closed, batch.slice(0, late)

    def finish(self) -> Batches:
        """Returns the windows of the rows that wait."""
        closed, end = Batches(), self._end or 0
        while self._buffer:
            self._drop_before(end - self.period)
            closed += concatenate(self._buffer)
            end += self.every
            self._drop_before(end - self.period)
        return closed

    def _push(self, batch: pa.RecordBatch, times: Indexes, start: int, end: int) -> None:
        if start < end:
            self._buffer.append(batch.slice(start, end - start))
            self._times.append(times[start:end])

    def _drop_before(self, time: int) -> None:
        """Drops the buffered rows before a time. The rows of each batch are sorted."""
        if all(times[0] >= time for times in self._times):
            return
        starts = [_position(times, time) for times in self._times]
        kept = [i for i, start in enumerate(starts) if start < len(self._times[i])]
        self._buffer = [self._buffer[i].slice(starts[i]) for i in kept]
        self._times = [self._times[i][starts[i] :] for i in kept]


class WindowHandler(Handler):
    """Windows of each group, with a clock for each."""

    makes_batches = True

    def __init__(self, period: int, every: int, *, fill_period: bool = False) -> None:
        super().__init__()
        self._new_clock = partial(WindowClock, period, every, fill_period)
        self._new_clock()
        self._clocks: dict[str, WindowClock] = {}

    def state(self) -> State:
        return {"groups": [[group, clock.state()] for group, clock in self._clocks.items()]}

    def restore(self, state: State) -> None:
        self._clocks = {group: self._restored(clock) for group, clock in state["groups"]}

    def _restored(self, state: State) -> WindowClock:
        clock = self._new_clock()
        clock.restore(state)
        return clock

    def handle(self, batch: pa.RecordBatch) -> Batches:
        rows = self.drop_null_times(batch)
        if not rows.num_rows:
            return []
        key = group_key(batch.schema)
        self._check(rows)
        clock = self._clocks.setdefault(key, self._new_clock())
        return self._advance(clock, sort_by_time(rows))

    def finish(self) -> Batches:
        return [window for clock in self._clocks.values() for window in clock.finish()]

    def _check(self, rows: pa.RecordBatch) -> None:
        """Checks rows before the state changes. Raises HandlerError."""

    def _advance(self, clock: WindowClock, rows: pa.RecordBatch) -> Batches:
        """Returns the windows that sorted rows close."""
        closed, late = clock.add(rows)
        if late.num_rows:
            self.dropped.append(Dropped(late, LATE, code="late"))
        return closed


def check_duration(name: str, duration: int) -> int:
    """Returns a duration in seconds. Raises HandlerError if it is not within the limits."""
    if not 1 <= duration <= MAX_DURATION:
        raise HandlerError.invalid(
            f"{name} must be at least 1 second and at most {MAX_DURATION} seconds, found {duration}"
        )
    return duration


def _position(times: Indexes, time: int) -> int:
    """Returns the number of sorted times before a time."""
    return int(times.searchsorted(max(min(time, 2**63 - 1), -(2**63))))
