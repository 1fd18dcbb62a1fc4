"""Decision of a deduplication: the rows that have no duplicate near them in event time.

A table of kept rows has `KEY` and `HASH_2`, together a hash of 128 bits of the key, and
`EVENT_TIME` in microseconds since 1970.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.updating.rows import HASH_2, KEY

EVENT_TIME = "_penstock_event_time"
KEPT = pa.schema([(KEY, pa.int64()), (HASH_2, pa.int64()), (EVENT_TIME, pa.int64())])
"""The columns of kept rows."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Unexpired:
    """A merge strategy of kept rows: all rows after a time, sorted by key."""

    expired: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        unexpired = rows.filter(pc.greater(rows.column(EVENT_TIME), self.expired))
        return unexpired.sort_by(KEY).combine_chunks()


def find_first_rows(rows: pa.Table, kept: Iterable[pa.Table], within: int) -> Flags:
    """Returns whether each row is kept: no row of its key is, less than `within` away or equal.

    `rows` have the columns of `KEPT`, in the order of arrival, and `kept` are the rows of earlier
    batches with the same keys. A row without an event time is kept.
    """
    known = _times_by_key(kept)
    keys = rows.column(KEY).to_numpy()
    others = rows.column(HASH_2).to_numpy()
    times = rows.column(EVENT_TIME)
    is_single = _occurs_once(keys) & ~np.isin(keys, [key for key, _ in known])
    compared = np.flatnonzero(~is_single & np.asarray(times.is_valid()))
    values = times.fill_null(0).to_numpy()
    found = np.ones(len(keys), np.bool_)
    for index in compared.tolist():
        near = known.setdefault((int(keys[index]), int(others[index])), [])
        found[index] = _keep(near, int(values[index]), max(within, 1))
    return found


def _times_by_key(kept: Iterable[pa.Table]) -> dict[tuple[int, int], list[int]]:
    """Returns the event times of kept rows, sorted, by both hashes of the key."""
    known: dict[tuple[int, int], list[int]] = {}
    for table in kept:
        columns = (table.column(name).to_pylist() for name in KEPT.names)
        for key, other, time in zip(*columns, strict=True):
            insort(known.setdefault((key, other), []), time)
    return known


def _keep(times: list[int], time: int, within: int) -> bool:
    """Adds a time to the sorted times of its key unless one of them is less than `within` away."""
    place = bisect_left(times, time)
    if place < len(times) and times[place] - time < within:
        return False
    if place > 0 and time - times[place - 1] < within:
        return False
    times.insert(place, time)
    return True


def _occurs_once(values: npt.NDArray[np.int64]) -> Flags:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    flags: Flags = counts[inverse] == 1
    return flags
