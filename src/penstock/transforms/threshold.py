"""The transform `threshold`: a threshold that follows the values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from sys import float_info
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from penstock.core.errors import OptionError
from penstock.core.names import quote_name
from penstock.handlers.threshold import Threshold as ThresholdHandler
from penstock.handlers.threshold import ThresholdOptions
from penstock.sdk import Config, DataFrameTransform, PositiveDuration, Relation, State
from penstock.transforms.columns import require
from penstock.transforms.group_state import apply_by_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _check_seconds(duration: float) -> float:
    if duration % 1:
        raise ValueError("expected whole seconds")
    return duration


Seconds = Annotated[PositiveDuration, AfterValidator(_check_seconds)]


class Increase(Config):
    factor: float = Field(gt=0)
    """The factor of an increase."""
    after: Seconds
    """The time above the threshold after which it is increased."""


class Decrease(Config):
    trigger: float = Field(ge=0)
    """The part of the threshold that values must not exceed."""
    factor: float = Field(ge=0)
    """The factor of a decrease."""
    after: Seconds
    """The time after which the threshold is decreased."""


class ThresholdConfig(Config):
    column: str
    """The column whose values are compared with the threshold, a number."""
    time: str
    """The column of the time, a TIMESTAMP."""
    by: list[str] = []
    """The columns of a group. Each group has a threshold of its own."""
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


class Threshold(DataFrameTransform[ThresholdConfig]):
    """Adds a threshold that follows the values of a column, for each group.

    The threshold is multiplied by `increase.factor` once values have been above it for more than
    `increase.after`, and by `decrease.factor` once they have been at most `decrease.trigger` times
    the threshold for more than `decrease.after`. A value within this range starts anew. The column
    `as` has the threshold that is valid for the row, so that `where: idle > threshold` selects the
    values above it.

    Rows are processed in the order of their source, and the result is the same for every division
    into batches and after restarts. Partitions of a topic have no order between them: write the
    rows of a group to one partition. Times are compared in whole seconds. A null value changes
    nothing, and a null time starts and ends no period.

    The state has the threshold of each group, and grows with the number of groups. Parallel by
    group.

    ```yaml
    type: threshold
    from: metrics
    by: [host]
    column: load
    time: time
    as: level
    default: 10
    increase: {factor: 2, after: 5 minutes}
    decrease: {trigger: 0.3, factor: 0.5, after: 1 hour}
    max: 70
    ```
    """

    def relation(self) -> Relation:
        by = ", ".join(self.config.by) or "all rows"
        return Relation(state=State((f"the threshold of each {by}",), emits_final_rows=True))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.types import DoubleType, StructField

        (frame,) = inputs.values()
        config = self.config
        self._check_columns(frame)
        names = [column.lower() for column in frame.columns]
        if config.result.lower() in names:
            raise OptionError.of(
                "as", message=f'the input has a column "{config.result}"', code="duplicate-column"
            )
        added = StructField(config.result, DoubleType())
        places = [names.index(name.lower()) for name in config.by]
        time, watched = (names.index(name.lower()) for name in (config.time, config.column))
        create = partial(ThresholdHandler, self._options(f"c{watched}", f"c{len(names)}"))
        return apply_by_group(frame, create, places, time, [added])

    def _check_columns(self, frame: DataFrame) -> None:
        """Raises OptionError for unknown columns and columns of other types."""
        from pyspark.sql import types

        require(self, frame, "by", self.config.by)
        numbers = (types.IntegralType, types.FloatType, types.DoubleType)
        times = (types.TimestampType, types.TimestampNTZType)
        for option, kinds, expected in (
            ("column", numbers, "an integer, FLOAT or DOUBLE"), ("time", times, "a TIMESTAMP")
        ):  # fmt: skip
            name = getattr(self.config, option)
            require(self, frame, option, [name])
            kind = frame.select(quote_name(name)).schema[0].dataType
            if not isinstance(kind, kinds):
                found = kind.simpleString().upper()
                raise OptionError.of(
                    option, message=f'column "{name}" is {found}; expected {expected}',
                    code="unsupported-type",
                )  # fmt: skip

    def _options(self, watched: str, result: str) -> ThresholdOptions:
        config, decrease = self.config, self.config.decrease
        trigger, factor, after = (
            (decrease.trigger, decrease.factor, decrease.after) if decrease else (0.0, 1.0, 1)
        )
        return ThresholdOptions(
            watched, result, config.default, config.increase.factor, int(config.increase.after),
            trigger, factor, int(after), config.min, config.max,
        )  # fmt: skip
