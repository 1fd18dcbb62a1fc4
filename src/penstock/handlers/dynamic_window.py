"""The handler `dynamic_window`: windows whose period and distance are columns of the rows.

As `window`, with the columns `period_column` and `every_column`: a DURATION, or an integer whose
unit is in the metadata of the field (`time_unit`). A row whose values differ from the current ones
changes them at its time. A shorter window that would have ended before this time takes effect after
the end of the current one. Nulls and missing columns change nothing.

State: that of `window`, with the current period and distance of each group. Errors: those of
`window`; an integer without a unit, a type that is no duration, a duration of less than 1 second.
The state does not change then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches
from penstock.handlers.metadata import TIME_UNIT, TimeUnit, field_value
from penstock.handlers.rows import Indexes, column, seconds, time_values, whole
from penstock.handlers.window import MAX_DURATION, WindowClock, WindowHandler

_UNITS = {"s": TimeUnit.SECOND, "ms": TimeUnit.MILLI, "us": TimeUnit.MICRO, "ns": TimeUnit.NANO}
_PER_SECOND = {
    TimeUnit.NANO: 1_000_000_000, TimeUnit.MICRO: 1_000_000, TimeUnit.MILLI: 1_000,
}  # fmt: skip
_SECONDS = {
    TimeUnit.SECOND: 1, TimeUnit.MINUTE: 60, TimeUnit.HOUR: 3_600, TimeUnit.DAY: 86_400,
    TimeUnit.WEEK: 604_800,
}  # fmt: skip


@dataclass(frozen=True)
class _Durations:
    """The durations of a column in whole seconds; a null is 0."""

    values: Indexes
    valid: npt.NDArray[np.bool_]

    def at(self, row: int, current: int) -> int:
        """Returns the duration of a row, or the current one if it is null."""
        return int(self.values[row]) if self.valid[row] else current


class DynamicWindow(WindowHandler):
    """Windows of each group, with the period and the distance of columns."""

    fails_by_row = True

    def __init__(
        self, period: int, every: int, *, fill_period: bool = False,
        period_column: str | None = None, every_column: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(period, every, fill_period=fill_period)
        self._columns = period_column, every_column

    def _check(self, rows: pa.RecordBatch) -> None:
        for name in self._columns:
            durations(rows, name)

    def _advance(self, clock: WindowClock, rows: pa.RecordBatch) -> Batches:
        periods, distances = (durations(rows, name) for name in self._columns)
        times = seconds(time_values(rows))
        closed, start = Batches(), 0
        for row in _changes(rows, periods, distances):
            period = periods.at(row, clock.period) if periods else clock.period
            every = distances.at(row, clock.every) if distances else clock.every
            if (period, every) == (clock.period, clock.every):
                continue
            if row > start:
                closed += super()._advance(clock, rows.slice(start, row - start))
            start = row
            if period != clock.period:
                clock.set_period(period, int(times[row]))
            if every != clock.every:
                clock.set_every(every, int(times[row]))
        return closed + super()._advance(clock, rows.slice(start))


def _changes(rows: pa.RecordBatch, *durations: _Durations | None) -> list[int]:
    """Returns the rows at which a duration may change: the first one, and those that differ."""
    is_change = np.zeros(rows.num_rows, bool)
    is_change[0] = True
    for each in durations:
        if each is not None:
            is_change[1:] |= each.values[1:] != each.values[:-1]
    return np.flatnonzero(is_change).tolist()


def durations(rows: pa.RecordBatch, name: str | None) -> _Durations | None:
    """Returns the durations of a column, or None without this column. Raises HandlerError."""
    values = column(rows, name) if name is not None else None
    if name is None or values is None:
        return None
    unit = _unit(rows.schema.field(name))
    kind = values.type
    if not (
        pa.types.is_duration(kind) or kind in (pa.int32(), pa.int64(), pa.uint32(), pa.uint64())
    ):
        raise HandlerError.unsupported("Unexpected duration column's type")
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    longest = MAX_DURATION * _PER_SECOND.get(unit, 1) // _SECONDS.get(unit, 1)
    is_short = pc.less(values, pa.scalar(_PER_SECOND.get(unit, 1), kind))
    wrong = pc.or_(is_short, pc.greater(values, pa.scalar(min(longest, _largest(kind)), kind)))
    if wrong.true_count:
        value = values.filter(wrong)[0]
        raise HandlerError.invalid(
            f"Column {name} must be a duration of at least 1 second and at most "
            f"{MAX_DURATION} seconds, found {_integer(value)} ({unit.value})"
        )
    integers = pc.cast(values, pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    found = whole(integers, _PER_SECOND.get(unit, 1)) * _SECONDS.get(unit, 1)
    return _Durations(found, valid)


def _largest(kind: pa.DataType) -> int:
    return 2**31 - 1 if kind == pa.int32() else 2**32 - 1 if kind == pa.uint32() else 2**63 - 1


def _integer(value: pa.Scalar) -> int:
    number: int = value.value if pa.types.is_duration(value.type) else value.as_py()
    return number


def _unit(field: pa.Field) -> TimeUnit:
    """Returns the unit of a column with durations. Raises HandlerError."""
    if pa.types.is_duration(field.type) or pa.types.is_timestamp(field.type):
        return _UNITS[field.type.unit]
    if not field.metadata:
        raise HandlerError.invalid("Field has no metadata")
    unit = field_value(field, TIME_UNIT)
    if unit is None:
        raise HandlerError.missing(f"Field's metadata has no key {TIME_UNIT}")
    return TimeUnit(unit)
