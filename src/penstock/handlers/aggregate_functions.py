"""The functions of `aggregate` over the rows of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.rows import column, ticks

Function = Literal["first", "last", "min", "max", "mean"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
SUPPORTED_TYPES = (
    "Step-by-step array building currently supports one of "
    "{arrow::int64, arrow::float64, arrow::utf8, arrow::boolean, types fields only"
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a batch, at least one, and their times."""

    batch: pa.RecordBatch
    times: pa.TimestampArray

    @cached_property
    def first(self) -> int:
        """The row with the earliest time that arrived first; row 0 if all times are null."""
        earliest = pc.min_max(self.times.cast(pa.int64()))["min"]
        return max(int(pc.index(self.times.cast(pa.int64()), earliest).as_py()), 0)

    @cached_property
    def last(self) -> int:
        """The row with the latest time that arrived last; row 0 if all times are null."""
        integers = self.times.cast(pa.int64())
        latest = pc.min_max(integers)["max"]
        if not latest.is_valid:
            return 0
        rows = np.flatnonzero(pc.equal(integers, latest).fill_null(False).to_numpy(False))
        return int(rows[-1])

    def time(self, function: Function) -> pa.Scalar:
        """Returns the time of the batch: null if all times are null."""
        if function == "mean":
            valid = self.times.drop_null()
            total, count = sum(ticks(valid).tolist()), len(valid)
            mean = None if not count else abs(total) // count * (1 if total >= 0 else -1)
            return pa.scalar(mean, pa.int64()).cast(self.times.type)
        return self.times[self.first if function in ("first", "min") else self.last]


def aggregate(function: Function, rows: Rows, name: str) -> pa.Scalar:
    """Returns an aggregate of a column; null of type null without it. Raises HandlerError."""
    values = column(rows.batch, name)
    if values is None:
        return pa.scalar(None)
    kind = values.type
    if pa.types.is_null(kind):
        return pa.scalar(None)
    if kind not in (pa.int64(), pa.float64(), pa.string(), pa.bool_()) and not (
        pa.types.is_timestamp(kind)
    ):
        raise HandlerError.unsupported(SUPPORTED_TYPES)
    if function in ("first", "last"):
        return values[rows.first if function == "first" else rows.last]
    if pa.types.is_string(kind) or pa.types.is_timestamp(kind):
        kernel = "mean" if function == "mean" else "min_max"
        raise HandlerError.unsupported(
            f"Function {kernel} has no kernel matching input types (array[{kind}])"
        )
    if function == "mean":
        return _mean(values)
    return pc.min_max(values)[function]


def _mean(values: pa.Array) -> pa.Scalar:
    """Returns the mean as a DOUBLE; of integers from their exact sum."""
    valid = values.drop_null()
    if not len(valid):
        return pa.scalar(None, pa.float64())
    if pa.types.is_floating(valid.type):
        return pc.mean(valid)
    total = sum(valid.cast(pa.int64()).to_pylist())
    return pa.scalar(total / len(valid), pa.float64())
