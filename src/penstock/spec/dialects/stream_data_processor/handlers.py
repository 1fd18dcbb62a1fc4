"""Handlers of a node as those of the transform `handlers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from penstock.core.text import did_you_mean, plural
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.stream_data_processor.components import read_component
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode, SequenceNode

_ROLE = Option("column_type", choices=("tag", "field"), reading="`role`")
_WINDOW = (
    "type!", Option("period", "any", True, reading="`period`, in seconds"),
    Option("every", "any", True, reading="`every`, in seconds"), "fill_period:boolean",
)  # fmt: skip
HANDLERS: dict[str, Options] = {
    "default": options(
        "type!", "int64:map = `columns`", "double:map = `columns`", "string:map = `columns`",
        "bool:map = `columns`", Option("scope", choices=("column", "null", "both")), _ROLE,
    ),
    "filter": options("type!", Option("conditions", "any", True, reading="`where`")),
    "map": options("type!", "expressions!:map = `set`", _ROLE),
    "group": options("type!", "columns!:list = `by`"),
    "sort": options("type!", "columns!:list = `by`"),
    "aggregate": options(
        "type!", "aggregate_columns!:map = `columns`: functions with their results, by column",
        "result_time_column_rule:map = `time` and `time_as`, as `{last: time}`", _ROLE,
    ),
    "join": options(
        "type!", "join_on_columns:list = `on`",
        Option("tolerance", "any", reading="`tolerance`, in seconds"),
    ),
    "window": options(*_WINDOW),
    "dynamic_window": options(
        *_WINDOW, "period_column_name = `period_column`", "every_column_name = `every_column`",
        Option("time_unit", choices=("ns", "us", "ms", "s", "m", "h", "d", "w"),
               reading="`unit`"),
    ),
    "threshold": options(
        "type!", "watch_column! = `column`", "threshold_column! = `as`",
        Option("default_threshold", "any", True, reading="`default`"),
        Option("increase_scale_factor", "any", True, reading="`increase.factor`"),
        Option("increase_after", "any", True, reading="`increase.duration`, in seconds"),
        Option("decrease_trigger_factor", "any", reading="`decrease.trigger`"),
        Option("decrease_scale_factor", "any", reading="`decrease.factor`"),
        Option("decrease_after", "any", reading="`decrease.duration`, in seconds"),
        Option("min_threshold", "any", reading="`min`"),
        Option("max_threshold", "any", reading="`max`"),
    ),
    "derivative": options(
        "type!", Option("unit", "any", reading="`unit`, in nanoseconds"),
        Option("neighbourhood", "any", reading="`neighbourhood`, in nanoseconds"),
        "no_wait:boolean", "cases!:map = `columns`: a column, or column and order, by result",
    ),
    "dispatch": options("type!", Option("handler", "any", True)),
    "pipeline": options("type!", "handlers!:list = `handlers`, in their order"),
    "log": options("type!", unneeded("level", "`penstock inspect` shows the rows of a node")),
}  # fmt: skip
"""The handlers and their options."""
_DISPATCHED = {n: HANDLERS[n] for n in ("window", "dynamic_window", "threshold", "derivative")}
_FUNCTIONS = ("first", "last", "min", "max", "mean")


def read_handlers(
    list_: Node | None, findings: Findings, above: MappingNode
) -> Iterator[tuple[Node, dict[str, Tree]]]:
    """Yields the places and the options of handlers, also of those within a pipeline."""
    for node in list_.items if isinstance(list_, SequenceNode) else ():
        found = read_component(node, "handler", HANDLERS, findings, above)
        if found is None:
            continue
        type_, reading = found
        if type_ == "pipeline":
            yield from read_handlers(reading.get("handlers"), findings, reading.node)
        elif type_ != "log":
            yield node, {"type": type_, **READERS[type_](reading)}


def _span(reading: Reading, name: str, at_least: int = 0) -> Tree:
    """Returns a duration; an integer is in seconds."""
    node = reading.get(name)
    value = None if node is None else node.data()
    if type(value) is not int:
        return node
    if value < at_least:
        reading.findings.error(
            f'"{name}" of {reading.subject} expects at least {plural(at_least, "second")}, found '
            f"{value}",
            reading.where(name),
        )  # fmt: skip
    return f"{max(value, at_least)}s"


def _nanoseconds(reading: Reading, name: str) -> Tree:
    value = reading.value(name)
    if type(value) is not int:
        return reading.get(name)
    if value % 1000:
        reading.findings.error(
            f'"{name}" of {reading.subject} expects whole microseconds, in nanoseconds, found '
            f"{value}",
            reading.where(name),
        )  # fmt: skip
    return f"{value // 1000}us"


def _role(reading: Reading) -> Tree:
    return reading.text("column_type").upper() or None


def _default(reading: Reading) -> dict[str, Tree]:
    kinds: dict[str, type | tuple[type, ...]] = {
        "int64": int, "double": (int, float), "string": str, "bool": bool,
    }  # fmt: skip
    columns: dict[str, Tree] = {}
    for kind, type_ in kinds.items():
        for name, node in _entries(reading, kind):
            value = node.data()
            if not isinstance(value, type_) or isinstance(value, bool) != (kind == "bool"):
                reading.findings.error(
                    f'"{kind}" of {reading.subject} expects values of {kind}', node.location,
                    code="wrong-type",
                )  # fmt: skip
                continue
            columns.setdefault(name, float(str(value)) if kind == "double" else node)
    return {"columns": columns, "scope": reading.get("scope"), "role": _role(reading)}


def _aggregate(reading: Reading) -> dict[str, Tree]:
    role = _role(reading)
    columns: list[Tree] = [
        {"function": function, "column": name, "as": result, "role": role}
        for name, node in _entries(reading, "aggregate_columns")
        for function, result in _functions(reading, node)
    ]
    rule = reading.get("result_time_column_rule")
    rules = _functions(reading, rule) if rule is not None else []
    function, result = next(iter(rules), (None, None))
    return {"columns": columns, "time": function, "time_as": result}


def _functions(reading: Reading, node: Node) -> Iterator[tuple[str, Node]]:
    """Yields the functions of a map, each with its result."""
    if not isinstance(node, MappingNode):
        reading.findings.error(
            f"{reading.subject} expects a map of functions", node.location, code="wrong-type",
            hint="write functions with their results, as {last: idle_last}",
        )  # fmt: skip
        return
    for entry in node.entries:
        if entry.name in _FUNCTIONS:
            yield entry.name, entry.value
            continue
        reading.findings.error(
            f'there is no function "{entry.name}"', entry.key.location,
            hint=did_you_mean(entry.name, _FUNCTIONS) or f"use one of {', '.join(_FUNCTIONS)}",
        )  # fmt: skip


def _entries(reading: Reading, name: str) -> list[tuple[str, Node]]:
    node = reading.get(name)
    entries = node.entries if isinstance(node, MappingNode) else ()
    return [(entry.name, entry.value) for entry in entries]


def _window(reading: Reading) -> dict[str, Tree]:
    return {
        "period": _span(reading, "period", 1), "every": _span(reading, "every", 1),
        "fill_period": reading.get("fill_period"),
    }  # fmt: skip


def _dynamic_window(reading: Reading) -> dict[str, Tree]:
    return {
        **_window(reading), "period_column": reading.get("period_column_name"),
        "every_column": reading.get("every_column_name"), "unit": reading.get("time_unit"),
    }  # fmt: skip


def _threshold(reading: Reading) -> dict[str, Tree]:
    decrease: Mapping[str, Tree] = {
        "trigger": reading.get("decrease_trigger_factor"),
        "factor": reading.get("decrease_scale_factor"),
        "duration": _span(reading, "decrease_after"),
    }
    given = any(value is not None for value in decrease.values())
    return {
        "column": reading.get("watch_column"), "as": reading.get("threshold_column"),
        "default": reading.get("default_threshold"),
        "increase": {
            "factor": reading.get("increase_scale_factor"),
            "duration": _span(reading, "increase_after"),
        },
        "decrease": decrease if given else None,
        "min": reading.get("min_threshold"), "max": reading.get("max_threshold"),
    }  # fmt: skip


def _derivative(reading: Reading) -> dict[str, Tree]:
    cases = _entries(reading, "cases")
    columns: dict[str, Tree] = {
        name: {"column": case} if isinstance(case, ScalarNode) else case for name, case in cases
    }
    return {
        "columns": columns, "unit": _nanoseconds(reading, "unit"),
        "neighbourhood": _nanoseconds(reading, "neighbourhood"), "no_wait": reading.get("no_wait"),
    }  # fmt: skip


def _dispatch(reading: Reading) -> dict[str, Tree]:
    found = read_component(
        reading.get("handler"), "handler", _DISPATCHED, reading.findings, reading.node
    )
    if found is None:
        return {}
    return {"handler": {"type": found[0], **READERS[found[0]](found[1])}}


READERS: dict[str, Callable[[Reading], dict[str, Tree]]] = {
    "default": _default, "aggregate": _aggregate, "window": _window, "threshold": _threshold,
    "dynamic_window": _dynamic_window, "derivative": _derivative, "dispatch": _dispatch,
    "filter": lambda reading: {"where": reading.get("conditions")},
    "map": lambda reading: {"set": reading.get("expressions"), "role": _role(reading)},
    "group": lambda reading: {"by": reading.get("columns")},
    "sort": lambda reading: {"by": reading.get("columns")},
    "join": lambda reading: {
        "on": reading.get("join_on_columns"), "tolerance": _span(reading, "tolerance"),
    },
}  # fmt: skip
"""The functions that read the options of a handler."""
