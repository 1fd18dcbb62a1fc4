"""The transform `threshold`: a threshold that follows the values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.handlers.threshold import Threshold as ThresholdHandler
from penstock.sdk import DataFrameTransform, Relation, State
from penstock.sql.column_lineage import UntimedColumns
from penstock.sql.dialect.relation import Output
from penstock.transforms.columns import check_groups, require
from penstock.transforms.group_state import RESULT, apply_by_group, handler_names
from penstock.transforms.threshold_options import ThresholdLevels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ThresholdConfig(ThresholdLevels):
    time: str
    """The column of the time, a TIMESTAMP."""
    by: list[str] = []
    """The columns of a group. Each group has a threshold of its own."""


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
        check_groups(frame, by)
        options = config.options(handler_names(len(names), by)[watched], RESULT)
        create = partial(ThresholdHandler, options)
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
