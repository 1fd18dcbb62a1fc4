"""The columns of a select that are event times or windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.sql.dialect.calendar_windows import calendar_window
from penstock.sql.dialect.relation import Bound, Output, Spec
from penstock.sql.dialect.window_calls import SPARK_WINDOWS, WINDOWS, read_window, spark_window
from penstock.sql.functions import AGGREGATES
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Item, Part, Query, Select, Source
from penstock.sql.text.query import column_name
from penstock.sql.text.sql import Call, Sql

Outputs = Mapping[Source, Output]


def select_output(sql: Sql, select: Select, outputs: Outputs) -> Output:
    """Returns the event time and the windows of the rows of a select."""
    grouped = bool(select.groups) or is_aggregate(sql, select)
    time: str | None = None
    windows: dict[str, Spec | None] = dict(_grouped_windows(sql, select, outputs))
    known = windows if grouped else _input_windows(select, outputs)
    found: dict[str, Spec | None] = {}
    unnamed: set[str] = set()
    bounds: dict[str, Bound] = {}
    for item in select.items:
        if item.is_star:
            sources = starred_sources(sql, item, select.sources)
            if not grouped:
                for source in sources:
                    output = outputs[source].without(item.excluded)
                    found |= output.windows
                    unnamed |= output.unnamed
                    bounds |= output.bounds
                    time = time or output.time
            continue
        name, spec = _item_window(sql, item, known)
        if name is None and select.groups and item.name:
            # A watermark completes the windows of the calendar that a query groups by.
            spec = calendar_window(sql, item.expression)
            name = None if spec is None else item.name
        if name is not None:
            found[name.lower()] = spec
            if item.name is None and whole_call(sql, item.expression, *WINDOWS) is not None:
                unnamed.add(name.lower())
        elif item.name and _is_time(sql, item, select, outputs, grouped):
            time = item.name
        elif item.name and (bound := _item_bound(sql, item, select, outputs, known)):
            bounds[item.name.lower()] = bound
    return Output(time, found, frozenset(unnamed), bounds, _names(sql, select, outputs))


def _names(sql: Sql, select: Select, outputs: Outputs) -> tuple[str | None, ...] | None:
    """Returns the names of the columns of a select; None if it has a `*` of unknown columns."""
    names: list[str | None] = []
    for item in select.items:
        if not item.is_star:
            call = whole_call(sql, item.expression, *WINDOWS, *SPARK_WINDOWS)
            name = item.name or (window_name(sql, call) if call is not None else None)
            names.append(name.lower() if name is not None else None)
            continue
        for source in starred_sources(sql, item, select.sources):
            columns = outputs[source].without(item.excluded).names
            if columns is None:
                return None
            names += columns
    return tuple(names)


def window_name(sql: Sql, call: Call) -> str:
    """Returns the name of the column of a window without an alias."""
    function = sql[call.name].value.lower()
    return "window" if function in WINDOWS else function


def is_aggregate(sql: Sql, select: Select) -> bool:
    """Returns whether a select without GROUP BY has an aggregate function."""
    first, last = select.first_item, select.items[-1].part[1] if select.items else 0
    return any(
        sql[call.name].value.lower() in AGGREGATES and sql.word(_after_filter(sql, call)) != "OVER"
        for call in sql.calls(first=first, last=last)
    )


def _after_filter(sql: Sql, call: Call) -> int:
    """Returns the token after a call and its FILTER clause."""
    after = call.closing + 1
    if sql.word(after) == "FILTER" and sql.is_sign(after + 1, "("):
        after = sql.closing.get(after + 1, after) + 1
    return after


def window_calls(sql: Sql, part: Part, *names: str) -> Iterator[Call]:
    """Yields the calls of tumble, hop and session in a part, without those in queries.

    `names` are further functions.
    """
    for call in sql.calls(*WINDOWS, *names, first=part[0], last=part[1]):
        opening = sql.enclosing(call.name)
        while opening is not None and opening >= part[0]:
            if sql.word(opening + 1) in ("SELECT", "WITH"):
                break
            opening = sql.enclosing(opening)
        else:
            yield call


def _input_windows(select: Select, outputs: Outputs) -> dict[str, Spec | None]:
    windows: dict[str, Spec | None] = {}
    for source in select.sources:
        windows |= outputs[source].windows
    return windows


def _grouped_windows(
    sql: Sql, select: Select, outputs: Outputs
) -> Iterator[tuple[str, Spec | None]]:
    """Yields the windows that a query groups by, with the names that its items may use."""
    inputs = _input_windows(select, outputs)
    for part in select.groups:
        call = whole_call(sql, part, *WINDOWS, *SPARK_WINDOWS)
        name = column_name(sql, part)
        if call is not None:
            function = sql[call.name].value.lower()
            if function in WINDOWS:
                yield "window", read_window(sql, call)
            else:
                yield function, spark_window(sql, call)
        elif name is not None and name.lower() in inputs:
            yield name.lower(), inputs[name.lower()]


def _item_window(
    sql: Sql, item: Item, known: Mapping[str, Spec | None]
) -> tuple[str | None, Spec | None]:
    """Returns the name and the window of an item that is a window."""
    call = whole_call(sql, item.expression, *WINDOWS, *SPARK_WINDOWS)
    if call is not None:
        read = read_window if sql[call.name].value.lower() in WINDOWS else spark_window
        return item.name or window_name(sql, call), read(sql, call)
    column = column_name(sql, item.expression)
    if column is not None and column.lower() in known:
        return item.name or column, known[column.lower()]
    return None, None


def _is_time(sql: Sql, item: Item, select: Select, outputs: Outputs, grouped: bool) -> bool:
    if whole_call(sql, item.expression, "window_time", "row_time") is not None:
        return True
    column = column_name(sql, _without_cast(sql, item.expression))
    times = {(outputs[source].time or "").lower() for source in select.sources} - {""}
    return column is not None and not grouped and column.lower() in times


def _without_cast(sql: Sql, part: Part) -> Part:
    """Returns the expression that a part casts to a timestamp, or the part itself."""
    first, last = part
    is_cast = sql.word(first) == "CAST" and sql.closing.get(first + 1) == last - 1
    return (first + 2, last - 3) if is_cast and sql.word(last - 2) == "TIMESTAMP" else part


def _item_bound(
    sql: Sql, item: Item, select: Select, outputs: Outputs, known: Mapping[str, Spec | None]
) -> Bound | None:
    """Returns the start or the end of a window of fixed width that an item is."""
    first, last = _without_cast(sql, item.expression)
    column = (column_name(sql, (first, last)) or "").lower()
    if column in ("start", "end") and last - first >= 3:
        spec = known.get(sql[last - 3].value.lower())
        return (column, spec) if spec is not None and spec[0] != "session" else None
    found = [outputs[source].bounds[column] for source in select.sources
             if column in outputs[source].bounds]  # fmt: skip
    return found[0] if found else None


def starred_sources(sql: Sql, item: Item, sources: Sequence[Source]) -> Sequence[Source]:
    """Returns the sources of `*` or `a.*`."""
    first, _ = item.part
    if sql.is_sign(first, "*"):
        return sources
    owner = sql[first].value.lower()
    return [source for source in sources if (source.alias or source.name or "").lower() == owner]


def merge(query: Query, outputs: Sequence[Output]) -> Output:
    """Returns the output of UNION and the like: what all operands have by the same name."""
    if not outputs:
        return Output()
    first, *others = outputs
    time = first.time if all(other.time == first.time for other in others) else None
    windows = {
        name: spec
        for name, spec in first.windows.items()
        if all(other.windows.get(name, False) == spec for other in others)
    }
    bounds = {
        name: bound
        for name, bound in first.bounds.items()
        if all(other.bounds.get(name) == bound for other in others)
    }
    return Output(time, windows, first.unnamed, bounds, first.names)
