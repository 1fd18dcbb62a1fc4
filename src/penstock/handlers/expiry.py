"""Groups whose state is removed after a time without rows.

The clock is the latest time of all rows, and moves on by spans of `ttl`: with the first row of a
new span each group is removed whose latest row is more than `ttl` before this row. Its handler
ends first, so the rows that wait are output. The result depends on the rows and their order, not on
their division into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.dispatch import ByGroup
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import group_key
from penstock.handlers.rows import seconds, time_values
from penstock.handlers.state import State


class ExpiringGroups(ByGroup):
    """Groups by columns, each of which is removed `ttl` seconds after its latest row."""

    def __init__(self, by: Sequence[str], create: Callable[[], Handler], ttl: int) -> None:
        super().__init__(by, create)
        self._ttl = ttl
        self._clock: int | None = None
        self._latest: dict[str, int] = {}

    def state(self) -> State:
        return {**super().state(), "clock": self._clock, "latest": [*self._latest.items()]}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._clock, self._latest = state["clock"], dict(state["latest"])

    def handle(self, batch: pa.RecordBatch) -> Batches:
        known = batch.filter(pc.is_valid(time_values(batch)))
        outputs = super().handle(batch.filter(pc.is_null(time_values(batch))))
        clock = np.maximum.accumulate(seconds(time_values(known)))
        if not len(clock):
            return outputs
        first = int(clock[0]) if self._clock is None else self._clock
        spans = np.maximum(clock, first) // self._ttl
        changes = np.flatnonzero(np.diff(spans, prepend=first // self._ttl)).tolist()
        for start, end in pairwise([0, *changes, len(clock)]):
            if start in changes:
                outputs += self._expired(int(clock[start]))
            outputs += super().handle(known.slice(start, end - start))
        self._clock = max(first, int(clock[-1]))
        return outputs

    def of_group(self, batch: pa.RecordBatch) -> Batches:
        key, times = group_key(batch.schema), time_values(batch)
        if times.null_count < len(times):
            latest = int(seconds(times.drop_null()).max())
            self._latest[key] = max(self._latest.get(key, latest), latest)
        return super().of_group(batch)

    def _expired(self, clock: int) -> Batches:
        """Removes expired groups. Returns the output of their rows that wait."""
        outputs = Batches()
        for key in [key for key, time in self._latest.items() if time < clock - self._ttl]:
            del self._latest[key]
            outputs += self.end(key)
        return outputs
