"""The input of a pipeline, given whole, or in part while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from places import Input

LONGEST = 300.0


class Feeder:
    """Puts a half of the readings into a place at once, and the others in so many parts.

    With no parts it puts all of them there at once.
    """

    def __init__(self, place: Input, readings: Sequence[bytes], parts: int) -> None:
        self._place, self._readings = place, readings
        self._pool = ThreadPoolExecutor(1, "feeder")
        self._under_way: list[Future[None]] = []
        self._given = 0
        first = len(readings) // 2 if parts else len(readings)
        self._step = -(-(len(readings) - first) // max(parts, 1))
        self._give(first)
        self._finish()

    def go_on(self) -> None:
        """Another part, without waiting."""
        self._give(self._given + self._step)

    def rest(self) -> None:
        """All that is missing, until it is there."""
        self._give(len(self._readings))
        self._finish()

    def _give(self, until: int) -> None:
        part = self._readings[self._given : until]
        if part:
            self._under_way.append(self._pool.submit(self._place.put, part, self._given))
            self._given += len(part)

    def _finish(self) -> None:
        for each in self._under_way:
            each.result(LONGEST)
