"""The options of the transform `handlers`, and of each handler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from penstock.handlers.aggregate_functions import Function
from penstock.handlers.default import Scope
from penstock.sdk import Config, PositiveDuration
from penstock.sdk.null_text import NullText
from penstock.spec.model_types import NameList
from penstock.transforms.threshold_options import Seconds, ThresholdLevels, WholeSeconds

Role = Literal["TAG", "FIELD"]
Value = bool | int | float | str


class Default(Config):
    """Adds constant columns, and replaces nulls."""

    type: Literal["default"]
    """The handler."""
    columns: dict[str, Value] = Field(min_length=1)
    """The values by column. The column is BOOLEAN, BIGINT, DOUBLE or STRING, as its value is."""
    scope: Annotated[Scope, NullText()] = "column"
    """Whether missing columns are added (`column`), nulls replaced (`null`), or `both`."""
    role: Role = "FIELD"
    """The role of added columns."""


class Filter(Config):
    """Keeps the rows for which all conditions are true."""

    type: Literal["filter"]
    """The handler."""
    where: NameList
    """A condition, or several. Operands have one type; literals take that of the other operand."""


class Map(Config):
    """Adds columns that expressions compute."""

    type: Literal["map"]
    """The handler."""
    set: dict[str, str] = Field(min_length=1)
    """A map of new column to expression over the columns of the input. `/` of integers is the
    quotient without its fraction."""
    role: Role = "FIELD"
    """The role of the columns."""


class Group(Config):
    """Divides each batch into groups, in ascending order."""

    type: Literal["group"]
    """The handler."""
    by: list[str] = Field(min_length=1)
    """The columns of a group. They extend the group of the batch."""


class Sort(Config):
    """Sorts the rows of each batch in ascending order, nulls last."""

    type: Literal["sort"]
    """The handler."""
    by: list[str] = Field(min_length=1)
    """The columns of the order."""


class AggregateColumn(Config):
    function: Function
    """`first` and `last` are those by time. The mean is a DOUBLE."""
    column: str
    """The column of the values, a BIGINT, DOUBLE, BOOLEAN, STRING or TIMESTAMP."""
    result: str = Field(alias="as")
    """The column of the result."""
    role: Role = "FIELD"
    """The role of the result."""


class Aggregate(Config):
    """Makes one row of each group of a batch: time, measurement, group, and aggregates."""

    type: Literal["aggregate"]
    """The handler."""
    columns: list[AggregateColumn] = []
    """The aggregates."""
    time: Function = "last"
    """The function of the time of a row."""
    time_as: str = "time"
    """The column of the time of a row."""


class Join(Config):
    """Merges the rows of a batch that have equal keys, and times within a tolerance."""

    type: Literal["join"]
    """The handler."""
    on: list[str] = []
    """The columns of the key. Without columns rows are merged by their times alone."""
    tolerance: WholeSeconds = 0.0
    """The longest time between the first row of an output row and the others."""


class Window(Config):
    """Makes a batch of the rows of each window, when a row after its end arrives.

    Each group has windows of its own, which begin with its first row.
    """

    type: Literal["window"]
    """The handler."""
    period: Seconds
    """The length of a window."""
    every: Seconds
    """The time between the ends of two windows."""
    fill_period: bool = False
    """Whether the first window has the whole period, in place of `every`."""


class DynamicWindow(Config):
    """Makes windows whose period and distance are columns of the rows."""

    type: Literal["dynamic_window"]
    """The handler."""
    period: Seconds
    """The first period."""
    every: Seconds
    """The first distance."""
    fill_period: bool = False
    """Whether the first window has the whole period, in place of `every`."""
    period_column: str | None = None
    """The column of the period, an INTERVAL or an INT or BIGINT of `unit`. A null changes
    nothing."""
    every_column: str | None = None
    """The column of the distance, as `period_column`."""
    unit: Literal["ns", "us", "ms", "s", "m", "h", "d", "w"] | None = None
    """The unit of columns of integers."""


class DerivativeColumn(Config):
    column: str
    """The column of the values, a number."""
    order: int = Field(default=1, ge=0)
    """The order of the derivative. Order 0 is the value of the polynomial."""


class Derivative(Config):
    """Adds derivatives by time, of the polynomial through the values around each row."""

    type: Literal["derivative"]
    """The handler."""
    columns: dict[str, DerivativeColumn] = Field(min_length=1)
    """The derivatives by their column."""
    unit: PositiveDuration = 1.0
    """The unit of time of the derivatives."""
    neighbourhood: PositiveDuration | None = None
    """The longest time between a row and the values around it. By default `unit`."""
    no_wait: bool = False
    """Do not wait for the values after a row, but compute with those of its batch."""


class Threshold(ThresholdLevels):
    """Adds a threshold that follows the values of a column, as the transform `threshold`."""

    type: Literal["threshold"]
    """The handler."""


class Dispatch(Config):
    """Applies a handler of its own to each group."""

    type: Literal["dispatch"]
    """The handler."""
    handler: Annotated[Window | DynamicWindow | Derivative | Threshold, Field(discriminator="type")]
    """The handler."""


HandlerSpec = Annotated[
    Default
    | Filter
    | Map
    | Group
    | Sort
    | Aggregate
    | Join
    | Window
    | DynamicWindow
    | Derivative
    | Threshold
    | Dispatch,
    Field(discriminator="type"),
]


class HandlersConfig(Config):
    handlers: list[HandlerSpec] = Field(min_length=1)
    """The handlers, in order."""
    by: list[str] = []
    """The columns of a group. Each group has handlers of its own."""
    time: str | None = None
    """The column of the time, a TIMESTAMP. By default that of the transform `handlers` upstream."""
    measurement: str | None = None
    """The column of the measurement, a STRING. By default that of the transform upstream."""
    tags: list[str] = []
    """The columns with the role TAG. Other columns have the role FIELD."""
    ttl: Seconds | None = None
    """The time after which a group without rows is removed, by the times of the rows of other
    groups. The rows that wait in its windows are output before. A row that comes later starts a new
    group."""
    batch: list[str] = []
    """The columns that the rows of a batch share, such as the time of one report. A batch ends with
    the first row of the next one. Without these columns the batches are the windows."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        check_order(self.handlers, bool(self.batch))
        if self.ttl is not None and not self.by:
            raise ValueError("expected by: ttl removes groups, and there is one group without by")
        return self


def check_order(handlers: Sequence[HandlerSpec], has_batches: bool) -> None:
    """Raises ValueError for a handler whose result would depend on the division of the rows."""
    has_groups = False
    for each in handlers:
        inner = each.handler if isinstance(each, Dispatch) else each
        needs = isinstance(inner, Sort | Aggregate | Join)
        needs = needs or (isinstance(inner, Derivative) and inner.no_wait)
        if needs and not has_batches:
            name = "derivative with no_wait" if isinstance(inner, Derivative) else inner.type
            raise ValueError(
                f"expected batches for {name}: set batch to the columns that the rows of a batch "
                "share, or add a window before it"
            )
        if has_groups and isinstance(each, Derivative | Threshold):
            raise ValueError(
                f"expected dispatch for {each.type} after group, because rows of several groups "
                f"have no order: write {{type: dispatch, handler: {{type: {each.type}, ...}}}}"
            )
        has_groups = has_groups or (isinstance(each, Group) and not has_batches)
        has_batches = has_batches or isinstance(inner, Window | DynamicWindow)
