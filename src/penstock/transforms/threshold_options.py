"""The options of thresholds, for the transforms `threshold` and `handlers`."""

from __future__ import annotations

from math import inf
from sys import float_info
from typing import Annotated

from pydantic import AfterValidator, Field

from penstock.handlers.threshold import ThresholdOptions
from penstock.sdk import Config, PositiveDuration

_NEVER = (-inf, 1.0, 1.0)
"""The trigger, the factor and the time of a decrease that never happens."""


def check_seconds(duration: float) -> float:
    """Returns a duration of whole seconds. Raises ValueError."""
    if duration % 1:
        raise ValueError("expected whole seconds")
    return duration


Seconds = Annotated[PositiveDuration, AfterValidator(check_seconds)]


class Increase(Config):
    factor: float = Field(gt=0)
    """The factor of an increase."""
    duration: Seconds
    """The time above the threshold after which it is increased."""


class Decrease(Config):
    trigger: float = Field(ge=0)
    """The part of the threshold that values must not exceed."""
    factor: float = Field(ge=0)
    """The factor of a decrease."""
    duration: Seconds
    """The time after which the threshold is decreased."""


class ThresholdLevels(Config):
    """The column of the values, the first threshold, and its changes."""

    column: str
    """The column whose values are compared with the threshold, a number."""
    result: str = Field(default="threshold", alias="as")
    """The column of the threshold, which is added."""
    default: float
    """The first threshold of a group."""
    increase: Increase
    """The increase of the threshold, after values above it."""
    decrease: Decrease | None = None
    """The decrease of the threshold, after values below a part of it."""
    min: float = 0.0
    """The lowest threshold after a decrease."""
    max: float = float_info.max
    """The highest threshold after an increase."""

    def options(self, watched: str, result: str) -> ThresholdOptions:
        """Returns the options of the handler, with its names of columns."""
        increase, decrease = self.increase, self.decrease
        trigger, factor, after = (
            (decrease.trigger, decrease.factor, decrease.duration) if decrease else _NEVER
        )
        return ThresholdOptions(
            watched, result, self.default, increase.factor, int(increase.duration),
            trigger, factor, int(after), self.min, self.max,
        )  # fmt: skip
