"""Points of a function of time, and the derivatives of the polynomials through them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.handlers.errors import HandlerError
from penstock.handlers.rows import Indexes

Numbers = npt.NDArray[np.float64]
_MIN, _MAX = -(2**63), 2**63 - 1
MAX_POINTS = 500
"""The maximum number of points around a row. Polynomials of a higher degree exceed a DOUBLE."""


@dataclass(frozen=True)
class Points:
    """Points in ascending order of their times in nanoseconds; equal times in order of arrival."""

    times: Indexes
    values: Numbers

    @classmethod
    def none(cls) -> Self:
        """Returns no points."""
        return cls(np.array([], np.int64), np.array([], np.float64))

    def with_points(self, others: Points) -> Points:
        """Returns these points and others."""
        times = np.concatenate([self.times, others.times])
        values = np.concatenate([self.values, others.values])
        if (times[1:] >= times[:-1]).all():
            return Points(times, values)
        order = np.argsort(times, kind="stable")
        return Points(times[order], values[order])

    def since(self, time: int) -> Points:
        """Returns the points from a time on."""
        start = int(np.searchsorted(self.times, max(time, _MIN)))
        return Points(self.times[start:], self.values[start:])

    def derivatives(
        self, times: Indexes, order: int, unit: int, neighbourhood: int
    ) -> pa.DoubleArray:
        """Returns the derivative at each time of the polynomial through the points around it.

        The derivative is per `unit`^`order`. It is null without order + 1 points, and if two points
        have the same time. Raises HandlerError above `MAX_POINTS` points.
        """
        starts = np.searchsorted(
            self.times, np.maximum(times, _MIN + neighbourhood) - neighbourhood
        )
        highest = np.minimum(times, _MAX - neighbourhood) + neighbourhood
        ends = np.searchsorted(self.times, highest, side="right")
        counts = ends - starts
        if len(counts) and counts.max() > MAX_POINTS:
            raise HandlerError.invalid(
                f"A neighbourhood has {counts.max()} points, and at most {MAX_POINTS} are supported"
            )
        results, valid = np.zeros(len(times)), np.zeros(len(times), bool)
        is_distinct = bool((self.times[1:] != self.times[:-1]).all())
        for count in {*counts.tolist()} - {*range(order + 1)}:
            rows = np.flatnonzero(counts == count)
            indexes = starts[rows][:, None] + np.arange(count)
            around = self.times[indexes]
            if not is_distinct:
                distinct = (around[:, 1:] != around[:, :-1]).all(axis=1)
                rows, indexes, around = rows[distinct], indexes[distinct], around[distinct]
            weights = _weights((around - times[rows][:, None]) / unit, order)
            results[rows], valid[rows] = (weights * self.values[indexes]).sum(axis=1), True
        return pa.array(results, mask=~valid)


def _weights(distances: Numbers, order: int) -> Numbers:
    """Returns `derivative_weights`; those of equal distances, as of regular times, from a cache."""
    if len(distances) and (distances == distances[0]).all():
        return _equal_weights(tuple(distances[0].tolist()), order)
    return derivative_weights(distances, order)


@lru_cache(maxsize=1000)
def _equal_weights(distances: tuple[float, ...], order: int) -> Numbers:
    return derivative_weights(np.array([distances]), order)


def derivative_weights(distances: Numbers, order: int) -> Numbers:
    """Returns the weights of points in the derivative at 0 of the polynomial through them.

    Each row of `distances` has the distinct distances of points from 0. The algorithm is that of
    Fornberg (1988).
    """
    rows, count = distances.shape
    scale = np.abs(distances).max(axis=1, keepdims=True, initial=0)
    scale[scale == 0] = 1
    x = distances / scale
    weights = np.zeros((order + 1, rows, count))
    weights[0, :, 0] = 1
    product = np.ones(rows)
    for i in range(1, count):
        differences = x[:, i, None] - x[:, :i]
        next_product = differences.prod(axis=1)
        last = [weights[k, :, i - 1].copy() for k in range(order + 1)]
        for k in range(min(i, order), -1, -1):
            lower = k * last[k - 1] if k else 0.0
            weights[k, :, i] = product * (lower - x[:, i - 1] * last[k]) / next_product
            below = k * weights[k - 1, :, :i] if k else 0.0
            weights[k, :, :i] = (x[:, i, None] * weights[k, :, :i] - below) / differences
        product = next_product
    return np.asarray(weights[order] / scale**order)
