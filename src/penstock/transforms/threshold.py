"""The transform `threshold`: a threshold that follows the values of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from sys import float_info
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.handlers.threshold import Threshold as ThresholdHandler
from penstock.handlers.threshold import ThresholdOptions
from penstock.sdk import Config, DataFrameTransform, PositiveDuration, Relation, State
from penstock.sql.column_lineage import UntimedColumns
from penstock.sql.dialect.relation import Output
from penstock.transforms.columns import require
from penstock.transforms.group_state import RESULT, apply_by_group, handler_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_NEVER = (-inf, 1.0, 1.0)
"""The trigger, the factor and the time of a decrease that never happens."""


def _check_types(frame: DataFrame, by: Sequence[int]) -> None:
    """Raises OptionError for a grouping column whose values are no numbers, texts or times."""
    from pyspark.sql import types

    for index, position in enumerate(by):
        field = frame.schema[position]
        kinds = (types.NumericType, types.StringType, types.BooleanType, types.DatetimeType)
        if not isinstance(field.dataType, kinds):
            found = field.dataType.simpleString().upper()
            raise OptionError.of(
                "by", index, message=f'column "{field.name}" is {found}, which cannot be a group',
                code="unsupported-type",
            )  # fmt: skip


def _check_seconds(duration: float) -> float:
    if duration % 1:
        raise ValueError("expected whole seconds")
    return duration


Seconds = Annotated[PositiveDuration, AfterValidator(_check_seconds)]


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
    `increase.duration`, and by `decrease.factor` once they have been at most `decrease.trigger`
    times the threshold for more than `decrease.duration`. A value within this range starts anew.
    The column `as` has the threshold that is valid for the row, so that `where: idle > threshold`
    selects the values above it.

    Rows are processed in the order of their source, and the result is the same for every division
    into batches and after restarts. Partitions of a topic have no order between them: write the
    rows of a group to one partition. Times are compared in whole seconds. A null value changes
    nothing, and a null time starts and ends no period.

    The state has the threshold of each group, and grows with the number of groups. The output has
    no event time, so SQL below the transform cannot group it by windows. Parallel by group.

    ```yaml
    type: threshold
    from: metrics
    by: [host]
    column: load
    time: time
    as: level
    default: 10
    increase: {factor: 2, duration: 5 minutes}
    decrease: {trigger: 0.3, factor: 0.5, duration: 1 hour}
    max: 70
    ```
    """

    def relation(self) -> Relation:
        by = ", ".join(self.config.by) or "all rows"
        state = State((f"the threshold of each {by}",), emits_final_rows=True)
        return Relation(state=state, lineage=UntimedColumns(), output=Output())

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql import types

        (frame,) = inputs.values()
        config = self.config
        require(self, frame, "by", config.by)
        numbers = (types.IntegralType, types.FloatType, types.DoubleType)
        watched = self._position(frame, "column", numbers, "an integer, FLOAT or DOUBLE")
        times = (types.TimestampType, types.TimestampNTZType)
        time = self._position(frame, "time", times, "a TIMESTAMP")
        names = [column.lower() for column in frame.columns]
        if config.result.lower() in names:
            raise OptionError.of(
                "as", message=f'the input has a column "{config.result}"', code="duplicate-column"
            )
        by = [names.index(name) for name in dict.fromkeys(each.lower() for each in config.by)]
        _check_types(frame, by)
        create = partial(ThresholdHandler, self._options(handler_names(len(names), by)[watched]))
        return apply_by_group(frame, create, by, time, config.result, types.DoubleType())

    def _position(
        self, frame: DataFrame, option: str, kinds: tuple[type, ...], expected: str
    ) -> int:
        """Returns the position of the column of an option. Raises OptionError."""
        name: str = getattr(self.config, option)
        for position, field in enumerate(frame.schema):
            if field.name.lower() == name.lower():
                if isinstance(field.dataType, kinds):
                    return position
                found = field.dataType.simpleString().upper()
                message = f'column "{name}" is {found}; expected {expected}'
                raise OptionError.of(option, message=message, code="unsupported-type")
        raise OptionError.of(
            option,
            message=f'transform "{self.context.node}": there is no column "{name}"',
            code="unknown-column",
            hint=did_you_mean(name, frame.columns),
        )

    def _options(self, watched: str) -> ThresholdOptions:
        config, decrease = self.config, self.config.decrease
        trigger, factor, after = (
            (decrease.trigger, decrease.factor, decrease.duration) if decrease else _NEVER
        )
        return ThresholdOptions(
            watched, RESULT, config.default, config.increase.factor, int(config.increase.duration),
            trigger, factor, int(after), config.min, config.max,
        )  # fmt: skip
