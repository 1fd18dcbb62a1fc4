"""The functions of `aggregate` over the rows of several batches, one value for each batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.handlers.errors import HandlerError
from penstock.handlers.rows import Indexes, ticks

Function = Literal["first", "last", "min", "max", "mean"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
SUPPORTED_TYPES = (
    "Step-by-step array building currently supports one of "
    "{arrow::int64, arrow::float64, arrow::utf8, arrow::boolean, types fields only"
)
_LIMITS = {"min": np.iinfo(np.int64).max, "max": np.iinfo(np.int64).min}
_HALF = 32


@dataclass(frozen=True, eq=False)
class Segments:
    """Batches with at least one row each, as runs of rows of joined columns, and their times."""

    counts: Indexes
    times: pa.TimestampArray

    def each(self) -> Iterator[Segments]:
        """Yields each batch on its own."""
        for start, count in zip(self.starts.tolist(), self.counts.tolist(), strict=True):
            yield Segments(np.array([count]), self.times.slice(start, count))

    @cached_property
    def starts(self) -> Indexes:
        """The first row of each batch."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def first(self) -> Indexes:
        """The rows with the earliest times that arrived first; the first row without times."""
        rows = self._extremes("min")
        return np.asarray(rows[np.searchsorted(rows, self.starts)])

    @cached_property
    def last(self) -> Indexes:
        """The rows with the latest times that arrived last; the first row without times."""
        rows = self._extremes("max")
        last = rows[np.searchsorted(rows, self.starts + self.counts) - 1]
        known = self._sums(_valid(self.times)) > 0
        return np.where(known, last, self.starts)

    def _extremes(self, function: Literal["min", "max"]) -> Indexes:
        """Returns the rows whose time is the earliest or the latest one of their batch."""
        values = np.where(_valid(self.times), ticks(self.times), _LIMITS[function])
        extremes = _reduce(function).reduceat(values, self.starts)
        return np.flatnonzero(values == np.repeat(extremes, self.counts))

    def _sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(np.add.reduceat(values, self.starts, dtype=_wide(values)))

    def time(self, function: Function) -> pa.Array:
        """Returns the times of the batches: null if all times of a batch are null."""
        if function == "mean":
            totals, counts = self._totals(self.times.view(pa.int64()))
            means = [
                abs(total) // count * (1 if total >= 0 else -1) if count else None
                for total, count in zip(totals, counts, strict=True)
            ]
            return pa.array(means, pa.int64()).cast(self.times.type)
        return self.times.take(pa.array(self.first if function in ("first", "min") else self.last))

    def aggregate(self, function: Function, values: pa.Array) -> pa.Array:
        """Returns an aggregate of a column. Raises HandlerError if its type is not supported."""
        kind = values.type
        if pa.types.is_null(kind):
            return pa.nulls(len(self.counts))
        if kind not in (pa.int64(), pa.float64(), pa.string(), pa.bool_()) and not (
            pa.types.is_timestamp(kind)
        ):
            raise HandlerError.unsupported(SUPPORTED_TYPES)
        if function == "first":
            return values.take(pa.array(self.first))
        if function == "last":
            return values.take(pa.array(self.last))
        if pa.types.is_string(kind) or pa.types.is_timestamp(kind):
            kernel = "mean" if function == "mean" else "min_max"
            raise HandlerError.unsupported(
                f"Function {kernel} has no kernel matching input types (array[{kind}])"
            )
        if function != "mean":
            return self._extreme(function, values)
        if pa.types.is_floating(kind):
            return self._mean(values)
        totals, counts = self._totals(values.cast(pa.int64()))
        means = [t / n if n else None for t, n in zip(totals, counts, strict=True)]
        return pa.array(means, pa.float64())

    def _extreme(self, function: Literal["min", "max"], values: pa.Array) -> pa.Array:
        valid = _valid(values)
        if pa.types.is_floating(values.type):
            numbers = np.where(valid, values.to_numpy(zero_copy_only=False), np.nan)
            reduce: np.ufunc = np.fmin if function == "min" else np.fmax
        else:
            numbers = np.where(valid, ticks(values.cast(pa.int64())), _LIMITS[function])
            reduce = _reduce(function)
        found = reduce.reduceat(numbers, self.starts)
        is_null = self._sums(valid) == 0
        plain = np.where(is_null, 0, found) if pa.types.is_boolean(values.type) else found
        return pa.array(plain, mask=is_null).cast(values.type)

    def _mean(self, values: pa.Array) -> pa.Array:
        valid = _valid(values)
        sums = self._sums(np.where(valid, values.to_numpy(zero_copy_only=False), 0.0))
        counts = self._sums(valid)
        return pa.array(sums / np.maximum(counts, 1), mask=counts == 0)

    def _totals(self, integers: pa.Array) -> tuple[Sequence[int], Sequence[int]]:
        """Returns the exact sums and the numbers of the values that are not null."""
        values, valid = ticks(integers), _valid(integers)
        high, low = self._sums(values >> _HALF), self._sums(values & (2**_HALF - 1))
        pairs = zip(high.tolist(), low.tolist(), strict=True)
        return [(upper << _HALF) + lower for upper, lower in pairs], self._sums(valid).tolist()


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    if not values.null_count:
        return np.ones(len(values), bool)
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False))


def _reduce(function: Literal["min", "max"]) -> np.ufunc:
    return np.minimum if function == "min" else np.maximum


def _wide(values: npt.NDArray[Any]) -> type[np.int64] | type[np.float64]:
    return np.float64 if values.dtype.kind == "f" else np.int64
