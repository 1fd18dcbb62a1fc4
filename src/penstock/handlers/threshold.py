"""The handler `threshold`: a threshold that follows the values of a column.

Input: the watched column, a number, and the time column if a value leaves the range of the
threshold. Output: the same rows with one more DOUBLE column, the threshold that is valid for the
row. Rows are processed in the order of arrival, times are whole seconds.

State: the threshold T, and whether values are in range (`ok`), above T (`increasing`) or at most T
* decrease_trigger (`decreasing`), since a time. After more than `increase_after` seconds above T it
is multiplied by `increase_scale`, up to `maximum`; after more than `decrease_after` seconds below,
by `decrease_scale`, down to `minimum`. The row is then compared with the new threshold. A null
value changes nothing, and a null time starts and ends no period.

Errors: a missing column, a watched column that is not a number. The state is then that of the rows
before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from sys import float_info
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import Role, with_role
from penstock.handlers.rows import append_column, column, seconds, time_values
from penstock.handlers.state import State

Kind = Literal["ok", "increasing", "decreasing"]
Time = Callable[[], int | None]


@dataclass(frozen=True)
class ThresholdOptions:
    """The columns, the first threshold, and its changes."""

    watch: str
    result: str
    default: float
    increase_scale: float
    increase_after: int
    decrease_trigger: float = 0.0
    decrease_scale: float = 0.0
    decrease_after: int = 0
    minimum: float = 0.0
    maximum: float = float_info.max
    role: Role = Role.FIELD


@dataclass(frozen=True)
class ThresholdState:
    """The threshold, and since when values are above or below it."""

    level: float
    kind: Kind = "ok"
    since: int = 0


class Threshold(Handler):
    """Appends the threshold of each row."""

    def __init__(self, options: ThresholdOptions) -> None:
        super().__init__()
        self._options = options
        self._state = ThresholdState(options.default)

    def state(self) -> State:
        return asdict(self._state)

    def restore(self, state: State) -> None:
        self._state = ThresholdState(**state)

    def handle(self, batch: pa.RecordBatch) -> Batches:
        result = self._options.result
        values = self._watched(batch)
        if result in batch.schema.names:
            raise HandlerError.missing(f"No such column: {result}")
        time_at = _times(batch)
        levels = []
        for row, value in enumerate(values):
            if value is not None:
                self._state = self._advance(self._state, value, partial(time_at, row))
            levels.append(self._state.level)
        field = with_role(pa.field(result, pa.float64()), self._options.role)
        return [append_column(batch, field, pa.array(levels, pa.float64()))]

    def _watched(self, batch: pa.RecordBatch) -> list[float | None]:
        name = self._options.watch
        values = column(batch, name)
        if values is None:
            message = f"Can't get value from column {name}: no such column exists"
            raise HandlerError.missing(message)
        kind = values.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise HandlerError.type(
                f"Threshold state machine requires numeric type, but {kind} type provided"
            )
        numbers: list[float | None] = pc.cast(values, pa.float64(), safe=False).to_pylist()
        return numbers

    def _advance(self, state: ThresholdState, value: float, time: Time) -> ThresholdState:
        """Returns the state after a value. Raises HandlerError if it needs a time without one."""
        options, level = self._options, state.level
        low = level * options.decrease_trigger
        if state.kind == "increasing":
            if value > level and _exceeds(options.increase_after, state.since, time()):
                raised = min(level * options.increase_scale, options.maximum)
                return self._advance(ThresholdState(raised), value, time)
            return ThresholdState(level) if value <= level else state
        is_decreasing = state.kind == "decreasing"
        if is_decreasing and value <= low and _exceeds(options.decrease_after, state.since, time()):
            lowered = max(level * options.decrease_scale, options.minimum)
            return self._advance(ThresholdState(lowered), value, time)
        if not is_decreasing and low <= value <= level:
            return state
        if value > level:
            return _since(state, "increasing", time())
        if is_decreasing:
            return ThresholdState(level) if value > low else state
        return _since(state, "decreasing", time()) if value <= low else state


def _times(batch: pa.RecordBatch) -> Callable[[int], int | None]:
    """Returns the time of a row in seconds by its number. The function may raise HandlerError."""

    @cache
    def times() -> list[int | None]:
        found = time_values(batch)
        is_null = found.is_null().to_numpy(zero_copy_only=False)
        values: list[int | None] = pa.array(seconds(found), mask=is_null).to_pylist()
        return values

    return lambda row: times()[row]


def _exceeds(duration: int, since: int, time: int | None) -> bool:
    return time is not None and time > since and time - since > duration


def _since(state: ThresholdState, kind: Kind, time: int | None) -> ThresholdState:
    """Returns the state from a time on; the same state if the time is null."""
    return state if time is None else ThresholdState(state.level, kind, time)
