"""The handlers of cases by name: their options, and the handler of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa

from penstock.core.text import did_you_mean
from penstock.handlers.aggregate import Aggregate, AggregateColumn
from penstock.handlers.aggregate_functions import FUNCTIONS, Function
from penstock.handlers.default import Default, DefaultValue, Scope
from penstock.handlers.derivative import Derivative, DerivativeCase
from penstock.handlers.dispatch import Dispatch
from penstock.handlers.dynamic_window import DynamicWindow
from penstock.handlers.filter import Filter
from penstock.handlers.group import GroupBy
from penstock.handlers.handler import Chain, Handler
from penstock.handlers.join import Join
from penstock.handlers.map import Map, MapColumn
from penstock.handlers.metadata import Role
from penstock.handlers.sort import Sort
from penstock.handlers.threshold import Threshold, ThresholdOptions
from penstock.handlers.window import WindowHandler
from penstock.testing.handler_cases.options import (
    Option,
    Options,
    WrongValue,
    choice,
    flag,
    integer,
    names,
    number,
    parse_options,
    parts,
    text,
)
from penstock.testing.handler_cases.place import Place

Values = Mapping[str, Any]
Create = Callable[[], Handler]


@dataclass(frozen=True)
class HandlerType:
    """The options of a handler, and its constructor, which raises HandlerError."""

    options: Options
    create: Callable[[Values], Handler]


_role = choice(*Role)
_function = choice(*FUNCTIONS)


def _aggregates(value: str) -> list[AggregateColumn]:
    return [
        AggregateColumn(_function(name), column, result, *map(_role, role))
        for name, column, result, *role in parts(3, 4, "FUNCTION:COLUMN:RESULT")(value)
    ]


def _time_rule(value: str) -> tuple[Function, str]:
    function, *name = value.split(":")
    if len(name) > 1 or name == [""]:
        raise WrongValue(f'expected FUNCTION or FUNCTION:NAME, found "{value}"')
    return _function(function), name[0] if name else "time"


def _defaults(kind: pa.DataType, read: Callable[[str], Any]) -> Option:
    def values(value: str) -> dict[str, DefaultValue]:
        found: dict[str, DefaultValue] = {}
        for item in value.split(",") if value else []:
            name, sign, rest = item.partition(":")
            if not name or not sign:
                raise WrongValue(f'expected NAME:VALUE, found "{item}"')
            before, _, last = rest.rpartition(":")
            role = Role(last) if last in tuple(Role) else Role.FIELD
            plain = before if last in tuple(Role) else rest
            found[name.strip()] = DefaultValue(pa.scalar(read(plain), kind), role)
        return found

    return Option(values, {})


def _expressions(value: str) -> list[MapColumn]:
    items = [item.partition(":") for item in _top_level(value)]
    for name, sign, expression in items:
        if not name or not sign or not expression:
            raise WrongValue(f'expected NAME:EXPRESSION, found "{name}{sign}{expression}"')
    return [MapColumn(name.strip(), expression) for name, _, expression in items]


def _top_level(value: str) -> list[str]:
    """Returns the parts between commas that are neither in parentheses nor in quotes."""
    found, depth, quote = [""], 0, ""
    for character in value:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
        if character == "," and not depth and not quote:
            found.append("")
        else:
            found[-1] += character
    return found if value else []


def _cases(value: str) -> dict[str, DerivativeCase]:
    found: dict[str, DerivativeCase] = {}
    for result, column, *order in parts(2, 3, "RESULT:COLUMN:ORDER")(value):
        if result in found:
            raise WrongValue(f"Duplicating result fields with name: {result}")
        degree = integer(order[0]) if order else 1
        if degree < 0:
            raise WrongValue(f"expected an order of at least 0, found {degree}")
        found[result] = DerivativeCase(column, degree)
    return found


def _conditions(value: str) -> list[str]:
    return [condition for condition in value.split("|") if condition.strip()]


_BY = {"by": Option(names, (), ("columns",))}
_WINDOW = {
    "period": Option(integer),
    "every": Option(integer),
    "fill": Option(flag, False, ("fill_period",)),
}
_DYNAMIC = {
    **_WINDOW,
    "pc": Option(text, None, ("period_column", "period_column_name")),
    "ec": Option(text, None, ("every_column", "every_column_name")),
}
_THRESHOLD = {
    "watch": Option(text, aliases=("watch_column",)),
    "as": Option(text, aliases=("threshold_column",)),
    "default": Option(number, aliases=("default_threshold",)),
    "inc": Option(number, aliases=("increase_scale_factor",)),
    "incafter": Option(integer, aliases=("increase_after",)),
    "dectrig": Option(number, 0.0, ("decrease_trigger_factor",)),
    "dec": Option(number, 0.0, ("decrease_scale_factor",)),
    "decafter": Option(integer, 0, ("decrease_after",)),
    "min": Option(number, ThresholdOptions.minimum, ("min_threshold",)),
    "max": Option(number, ThresholdOptions.maximum, ("max_threshold",)),
    "role": Option(_role, Role.FIELD),
}
_DEFAULT = {
    "int": Option(_defaults(pa.int64(), integer).read, {}, ("int64",)),
    "double": Option(_defaults(pa.float64(), number).read, {}, ("float64", "float", "dbl")),
    "string": Option(_defaults(pa.string(), str).read, {}, ("str", "utf8")),
    "bool": Option(_defaults(pa.bool_(), flag).read, {}),
    "scope": Option(choice(*get_args(Scope)), "column"),
}


def _default(values: Values) -> Handler:
    merged: dict[str, DefaultValue] = {}
    for kind in ("int", "double", "string", "bool"):
        merged.update({name: v for name, v in values[kind].items() if name not in merged})
    return Default(merged, values["scope"])


def _threshold(values: Values) -> Handler:
    v = values
    options = ThresholdOptions(
        v["watch"], v["as"], v["default"], v["inc"], v["incafter"], v["dectrig"], v["dec"],
        v["decafter"], v["min"], v["max"], v["role"],
    )  # fmt: skip
    return Threshold(options)


def _derivative(values: Values) -> Handler:
    unit = values["unit"]
    neighbourhood = unit if values["nb"] is None else values["nb"]
    return Derivative(values["cases"], unit, neighbourhood, no_wait=values["nowait"])


HANDLERS: Mapping[str, HandlerType] = {
    "aggregate": HandlerType(
        {
            "agg": Option(_aggregates, (), ("aggregate",)),
            "time": Option(_time_rule, ("last", "time")),
        },
        lambda v: Aggregate(v["agg"], *v["time"]),
    ),
    "default": HandlerType(_DEFAULT, _default),
    "derivative": HandlerType(
        {
            "cases": Option(_cases),
            "unit": Option(integer, 1_000_000_000),
            "nb": Option(integer, None, ("neighbourhood",)),
            "nowait": Option(flag, False, ("no_wait",)),
        },
        _derivative,
    ),
    "dwindow": HandlerType(
        _DYNAMIC,
        lambda v: DynamicWindow(
            v["period"],
            v["every"],
            fill_period=v["fill"],
            period_column=v["pc"],
            every_column=v["ec"],
        ),
    ),
    "filter": HandlerType(
        {"where": Option(_conditions, (), ("conditions", "condition"))},
        lambda v: Filter(v["where"]),
    ),
    "group": HandlerType(_BY, lambda v: GroupBy(v["by"])),
    "join": HandlerType(
        {
            "on": Option(names, (), ("join_on_columns",)),
            "tol": Option(integer, 0, ("tolerance",)),
        },
        lambda v: Join(v["on"], v["tol"]),
    ),
    "map": HandlerType(
        {"map": Option(_expressions, (), ("expressions",))}, lambda v: Map(v["map"])
    ),
    "sort": HandlerType(_BY, lambda v: Sort(v["by"])),
    "threshold": HandlerType(_THRESHOLD, _threshold),
    "window": HandlerType(
        _WINDOW, lambda v: WindowHandler(v["period"], v["every"], fill_period=v["fill"])
    ),
}
"""The handlers of record batches by name."""

_ALIASES = {"dynamic_window": "dwindow"}
_DISPATCH = re.compile(r"dispatch[(:|](\w+)\)?")
_CHAIN = re.compile(r"(?<!dispatch)\|")


def handler_of(words: str, options: str, place: Place) -> Create:
    """Returns the constructor of `NAME`, of `dispatch(NAME)`, or of several with `|` between them.

    `dispatch|NAME` is `dispatch(NAME)`, and `dispatch` alone has the option `handler=NAME`. Each
    one of several has the options of its names. Raises SpecError; the constructor HandlerError.
    """
    where = place.at("handler")
    if words == "dispatch":
        words, options = _dispatched(options)
    kinds = [_handler_type(word, where) for word in _CHAIN.split(words.replace(" ", ""))]
    known: dict[str, Option] = {}
    for kind, _ in kinds:
        known.update(kind.options)
    values = parse_options(options, known, place.at("options"))

    def create() -> Handler:
        handlers = [
            Dispatch(lambda kind=kind: kind.create(values)) if is_dispatched  # type: ignore[misc]
            else kind.create(values)
            for kind, is_dispatched in kinds
        ]  # fmt: skip
        return handlers[0] if len(handlers) == 1 else Chain(handlers)

    return create


def _dispatched(options: str) -> tuple[str, str]:
    """Returns `dispatch(NAME)` for the option `handler=NAME`, and the other options."""
    items = [item.partition("=") for item in options.split(";")]
    named = [value.strip() for name, _, value in items if name.strip() == "handler"]
    others = ["".join(item) for item in items if item[0].strip() != "handler"]
    return f"dispatch({named[0]})" if named else "dispatch", ";".join(others)


def _handler_type(word: str, place: Place) -> tuple[HandlerType, bool]:
    """Returns the handler of a word, and whether each group has one of its own."""
    match = _DISPATCH.fullmatch(word)
    name = match[1] if match else word
    kind = HANDLERS.get(_ALIASES.get(name, name))
    if kind is None:
        hint = did_you_mean(name, [*HANDLERS, "dispatch", "graphite", "csv"])
        raise place.error(f'unknown handler "{word}"', code="unknown-handler", hint=hint)
    return kind, match is not None
