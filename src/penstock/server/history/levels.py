"""Levels of the history: the steps between samples, how long they are kept, and their merging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True)
class Level:
    """A level. Samples have the distance `step` and are kept for `retention`, in seconds."""

    step: int
    retention: int


LEVELS = (
    Level(10, HOUR + 10 * MINUTE), Level(MINUTE, DAY + HOUR), Level(10 * MINUTE, 30 * DAY + HOUR),
    Level(HOUR, 30 * DAY + HOUR),
)  # fmt: skip
"""The levels, the finest first. Each step is a multiple of the one before."""
RESOLUTIONS = (10, 20, 30, 60, 120, 300, 600, 1200, 3600, 7200, 14400, 43200, 86400)
"""The steps of answers, each a multiple of the steps of all finer levels."""
MAX_WINDOW = 30 * DAY
POINTS = 200
"""The number of values of a series that an answer has by default, at most."""


class Value(NamedTuple):
    """The values of a series within a step: their mean, or the last one, and their extremes."""

    value: float
    least: float
    most: float

    @classmethod
    def of(cls, value: float) -> Value:
        return cls(value, value, value)


def merge(values: Sequence[Value], *, last: bool) -> Value:
    """Returns the value of a longer step. `last` takes the last value in place of the mean."""
    if len(values) == 1:
        return values[0]
    value = values[-1].value if last else math.fsum(each.value for each in values) / len(values)
    return Value(value, min(each.least for each in values), max(each.most for each in values))


def bucket(time: float, step: int) -> int:
    """Returns the start of the step with a time."""
    return int(time // step) * step


def resolution_of(window: float, wished: float | None = None, age: float = 0.0) -> int:
    """Returns the resolution of an answer: the least one of at least the wished number of seconds.

    By default it divides the window into at most `POINTS` steps. It is at least the step of the
    samples of an age, which is that of the oldest value.
    """
    least = wished if wished is not None else window / POINTS
    found = next((each for each in RESOLUTIONS if each >= least), RESOLUTIONS[-1])
    return max(found, LEVELS[level_for(found, age)].step)


def level_for(resolution: float, age: float) -> int:
    """Returns the coarsest level with this resolution that has samples of an age, in seconds."""
    index = max(
        i for i, level in enumerate(LEVELS) if level.step <= max(resolution, LEVELS[0].step)
    )
    while index < len(LEVELS) - 1 and age > LEVELS[index].retention:
        index += 1
    return index
