"""The handler `merge`: rows of several inputs in one order.

Input: a time column, and a column `input` with the number of the input of each row. Output: the
rows without this column, in the order of their times, then of their inputs. A row
that is earlier than a row before it in its input has the place of this row. A row is output once
each other input has a row that is not before it, so the order does not depend on the times of
arrival.

State: the rows that wait, and the latest time of each input. Errors: no time column of type
TIMESTAMP.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.handler import Batches, Handler
from penstock.handlers.rows import Indexes, aligned, concatenate, take, ticks, time_values
from penstock.handlers.state import State

_FIRST = -(2**63)


class Merge(Handler):
    """Merges `count` inputs by time. `input` is the column of their numbers."""

    def __init__(self, count: int, input: str) -> None:
        super().__init__()
        self._input = input
        self._latest: list[int | None] = [None] * count
        self._waiting: pa.RecordBatch | None = None
        self._places: Indexes = np.array([], np.int64)

    def state(self) -> State:
        return {"latest": self._latest, "waiting": self._waiting, "places": self._places}

    def restore(self, state: State) -> None:
        self._latest, self._waiting = state["latest"], state["waiting"]
        self._places = state["places"]

    def handle(self, batch: pa.RecordBatch) -> Batches:
        places = self._new_places(batch)
        waiting = [] if self._waiting is None else [aligned(self._waiting, batch.schema)]
        (rows,) = concatenate([*waiting, batch])
        places = np.concatenate([self._places, places])
        inputs = _integers(rows.column(self._input))
        order = np.lexsort((inputs, places))
        rows, places, inputs = take(rows, order), places[order], inputs[order]
        ready = self._ready(places, inputs)
        self._waiting, self._places = rows.slice(ready), places[ready:]
        return [rows.slice(0, ready).drop_columns([self._input])]

    def _new_places(self, batch: pa.RecordBatch) -> Indexes:
        """Returns the latest time of its input for each row, in ticks."""
        times = time_values(batch)
        found = np.where(_booleans(times.is_null()), _FIRST, ticks(times))
        inputs = _integers(batch.column(self._input))
        for number, latest in enumerate(self._latest):
            rows = np.flatnonzero(inputs == number)
            if len(rows):
                start = _FIRST if latest is None else latest
                found[rows] = np.maximum.accumulate(np.maximum(found[rows], start))
                self._latest[number] = int(found[rows[-1]])
        return found

    def _ready(self, places: Indexes, inputs: Indexes) -> int:
        """Returns the number of sorted rows before which no later row can come."""
        known = [latest for latest in self._latest if latest is not None]
        if len(known) < len(self._latest):
            return 0
        end = min(known)
        number = known.index(end)
        return int(np.count_nonzero((places < end) | ((places == end) & (inputs <= number))))


def _integers(values: pa.Array) -> Indexes:
    return np.asarray(pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False))


def _booleans(values: pa.Array) -> np.typing.NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False))
