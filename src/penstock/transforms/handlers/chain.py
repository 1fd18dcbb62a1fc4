"""Handlers of a transform: made from their options, and checked against columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.handlers.aggregate import Aggregate, AggregateColumn
from penstock.handlers.default import Default, DefaultValue
from penstock.handlers.derivative import Derivative, DerivativeCase
from penstock.handlers.dispatch import Dispatch
from penstock.handlers.dynamic_window import DynamicWindow
from penstock.handlers.errors import HandlerError
from penstock.handlers.filter import Filter
from penstock.handlers.group import GroupBy
from penstock.handlers.handler import Handler
from penstock.handlers.join import Join
from penstock.handlers.map import Map, MapColumn
from penstock.handlers.metadata import TIME_COLUMN, Role, TimeUnit, schema_value
from penstock.handlers.sort import Sort
from penstock.handlers.stream import Stages, Stream
from penstock.handlers.threshold import Threshold
from penstock.handlers.window import WindowHandler
from penstock.transforms.handlers import config as options

UNITS = {
    "ns": TimeUnit.NANO, "us": TimeUnit.MICRO, "ms": TimeUnit.MILLI, "s": TimeUnit.SECOND,
    "m": TimeUnit.MINUTE, "h": TimeUnit.HOUR, "d": TimeUnit.DAY, "w": TimeUnit.WEEK,
}  # fmt: skip
_STATEFUL = (
    options.Window, options.DynamicWindow, options.Derivative, options.Threshold, options.Dispatch,
)  # fmt: skip
_TIMED = (*_STATEFUL, options.Aggregate, options.Join)
Places = Iterator[tuple[tuple[str | int, ...], str]]


@dataclass(frozen=True)
class Chain:
    """The handlers of a transform by their options. It creates handlers in tasks."""

    specs: Sequence[options.HandlerSpec]
    batch: tuple[str, ...]

    def __call__(self) -> Stream:
        """Returns new handlers."""
        return Stream([make_handler(spec) for spec in self.specs], self.batch)

    @property
    def _stateless(self) -> int:
        """The first handler after those with state."""
        states = (i for i, spec in enumerate(self.specs, 1) if isinstance(spec, _STATEFUL))
        return max(states, default=0)

    def with_state(self) -> Chain:
        """Returns the handlers up to the last one with state. Each group has its own."""
        return Chain(self.specs[: self._stateless], self.batch)

    def after_state(self) -> Stages:
        """Returns new handlers for the batches after the last handler with state."""
        return Stages([make_handler(spec) for spec in self.specs[self._stateless :]])

    @property
    def has_state(self) -> bool:
        """Whether the output for a row depends on the rows before."""
        return bool(self.batch) or any(isinstance(spec, _STATEFUL) for spec in self.specs)

    @property
    def units(self) -> dict[str, TimeUnit]:
        """The units of the columns of integers with durations."""
        found: dict[str, TimeUnit] = {}
        for spec in self.specs:
            inner = spec.handler if isinstance(spec, options.Dispatch) else spec
            if isinstance(inner, options.DynamicWindow) and inner.unit is not None:
                names = (inner.period_column, inner.every_column)
                found |= {name: UNITS[inner.unit] for name in names if name is not None}
        return found

    def output(self, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of the output for those of the input. Raises OptionError."""
        for index, spec in enumerate(self.specs):
            place = ("handlers", index)
            for option, name in _columns(spec):
                if name not in schema.names:
                    raise OptionError.of(
                        *place, *option, message=f'there is no column "{name}"',
                        code="unknown-column", hint=did_you_mean(name, schema.names),
                    )  # fmt: skip
            if isinstance(spec, _TIMED) and schema_value(schema, TIME_COLUMN) is None:
                raise OptionError.of(
                    *place, message=f"{spec.type} requires a time", code="missing-option",
                    hint="Set time to the column of the time.",
                )  # fmt: skip
            try:
                schema = _output(spec, schema)
            except HandlerError as error:
                raise OptionError.of(
                    *place, message=f"{spec.type}: {error.message}", code="invalid-value"
                ) from None
        for field in schema:
            if pa.types.is_null(field.type):
                raise OptionError.of(
                    "handlers", message=f'the type of column "{field.name}" is unknown',
                    code="unsupported-type", hint="Write CAST(NULL AS TYPE).",
                )  # fmt: skip
        return schema


def make_handler(spec: options.HandlerSpec) -> Handler:
    """Returns the handler of its options. Raises HandlerError."""
    match spec:
        case options.Default():
            role = Role(spec.role)
            values = {n: DefaultValue(pa.scalar(v), role) for n, v in spec.columns.items()}
            return Default(values, spec.scope)
        case options.Filter():
            return Filter(spec.where)
        case options.Map():
            return Map([MapColumn(name, text, Role(spec.role)) for name, text in spec.set.items()])
        case options.Group():
            return GroupBy(spec.by)
        case options.Sort():
            return Sort(spec.by)
        case options.Aggregate():
            columns = [
                AggregateColumn(each.function, each.column, each.result, Role(each.role))
                for each in spec.columns
            ]
            return Aggregate(columns, spec.time, spec.time_as)
        case options.Join():
            return Join(spec.on, int(spec.tolerance))
        case options.Dispatch():
            return Dispatch(lambda: make_handler(spec.handler))
        case options.Derivative():
            return _derivative(spec)
        case options.Threshold():
            return Threshold(spec.options(spec.column, spec.result))
        case options.Window():
            return WindowHandler(int(spec.period), int(spec.every), fill_period=spec.fill_period)
        case options.DynamicWindow():
            return DynamicWindow(
                int(spec.period), int(spec.every), fill_period=spec.fill_period,
                period_column=spec.period_column, every_column=spec.every_column,
            )  # fmt: skip


def _derivative(spec: options.Derivative) -> Derivative:
    cases = {name: DerivativeCase(each.column, each.order) for name, each in spec.columns.items()}
    unit = round(spec.unit * 1e9)
    around = unit if spec.neighbourhood is None else round(spec.neighbourhood * 1e9)
    return Derivative(cases, unit, around, no_wait=spec.no_wait)


def _columns(spec: options.HandlerSpec) -> Places:
    """Yields the columns that a handler needs, each with its option."""
    match spec:
        case options.Group() | options.Sort():
            yield from ((("by", index), name) for index, name in enumerate(spec.by))
        case options.Join():
            yield from ((("on", index), name) for index, name in enumerate(spec.on))
        case options.Aggregate():
            for index, each in enumerate(spec.columns):
                yield ("columns", index, "column"), each.column
        case options.Derivative():
            for name, case in spec.columns.items():
                yield ("columns", name, "column"), case.column
        case options.Threshold():
            yield ("column",), spec.column
        case options.DynamicWindow():
            for option in ("period_column", "every_column"):
                if (name := getattr(spec, option)) is not None:
                    yield (option,), name
        case options.Dispatch():
            yield from ((("handler", *option), name) for option, name in _columns(spec.handler))


def _output(spec: options.HandlerSpec, schema: pa.Schema) -> pa.Schema:
    """Returns the columns of the output of one handler. Raises HandlerError."""
    handler = make_handler(spec)
    nulls = [pa.nulls(1, field.type) for field in schema]
    row = pa.RecordBatch.from_arrays(nulls, schema=schema)
    outputs = handler.handle_all([row])
    if handler.makes_batches:
        if isinstance(spec, options.DynamicWindow):
            check_durations(row, spec)
        return schema
    (output,) = outputs
    found: pa.Schema = output.schema
    return found


def check_durations(row: pa.RecordBatch, spec: options.DynamicWindow) -> None:
    """Checks the types of the columns of a dynamic window. Raises HandlerError."""
    from penstock.handlers.dynamic_window import durations

    for name in (spec.period_column, spec.every_column):
        durations(row, name)
