"""Queries whose result would differ if they read open windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from penstock.spec.script.hidden_windows import hidden_window
from penstock.sql.dialect.lineage import is_aggregate, starred_sources, window_calls
from penstock.sql.dialect.window_calls import SPARK_WINDOWS
from penstock.sql.text.clauses import Part, Query, Select, Source
from penstock.sql.text.query import column_name, subqueries
from penstock.sql.text.sql import Sql

_WINDOWS = (*SPARK_WINDOWS, "calendar_window")
_FIELDS = ("start", "end")
_OUTER = frozenset({"LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "LATERAL"})
_UNKNOWN = frozenset({"window"})
"""The columns of windows of a relation whose query is elsewhere."""
Columns = Mapping[str, Set[str]]
"""The columns of windows, and of their bounds, by the name of a relation in lower case."""


def needs_complete_windows(sql: Sql, query: Query) -> bool:
    """Returns whether the rows of open windows would change the result of a query."""
    for inner in query.queries():
        if has_over(sql, inner.part) or any("ALL" not in each for each in inner.operators):
            return True
    return any(_combines_windows(sql, *each) for each in _selects(sql, query, {}))


def groups_by_windows(sql: Sql, select: Select) -> bool:
    """Returns whether a select itself groups by a window of event time."""
    return bool(select.groups) and any(window_calls(sql, select.part, *_WINDOWS))


def has_over(sql: Sql, part: Part) -> bool:
    """Returns whether a part of a query has a window function with OVER."""
    return any(sql.word(index) == "OVER" and sql.is_sign(index - 1, ")") for index in range(*part))


def _selects(sql: Sql, query: Query, ctes: Columns) -> Iterator[tuple[Select, Columns]]:
    """Yields all selects of a query, with the columns of windows of the relations they read."""
    for name, cte in query.ctes.items():
        yield from _selects(sql, cte, ctes)
        ctes = {**ctes, name: _output(sql, cte, ctes)}
    for select in query.selects:
        yield select, _inputs(sql, select, ctes)
        for source in select.sources:
            if source.query is not None:
                yield from _selects(sql, source.query, ctes)


def _inputs(sql: Sql, select: Select, ctes: Columns) -> dict[str, Set[str]]:
    """Returns the columns of windows of the relations that a select reads."""
    return {
        _owner(source) or f"({number}": _columns(sql, source, ctes)
        for number, source in enumerate(select.sources)
    }


def _owner(source: Source) -> str:
    return (source.alias or source.name or "").lower()


def _columns(sql: Sql, source: Source, ctes: Columns) -> Set[str]:
    name = (source.name or "").lower()
    if source.query is not None:
        found = _output(sql, source.query, ctes)
        names = _names(source.query)
    else:
        found, names = ctes.get(name, _UNKNOWN), None
    return _renamed(sql, source.columns, names, found)


def _output(sql: Sql, query: Query, ctes: Columns) -> Set[str]:
    """Returns the columns of a query that are windows, or their start or end."""
    for name, cte in query.ctes.items():
        ctes = {**ctes, name: _output(sql, cte, ctes)}
    if not query.selects:
        return frozenset()
    select = query.selects[0]
    inputs = _inputs(sql, select, ctes)
    found = _selected(sql, select, inputs)
    return _renamed(sql, query.columns, _names(query), found)


def _selected(sql: Sql, select: Select, inputs: Columns) -> set[str]:
    """Returns the columns of a select that are windows, or their start or end."""
    found: set[str] = set()
    for item in select.items:
        if item.is_star:
            for source in starred_sources(sql, item, select.sources):
                found |= inputs.get(_owner(source), frozenset()) - item.excluded
        elif _is_window(sql, item.expression, select, inputs):
            found.add((item.name or "window").lower())
    return found


def _names(query: Query) -> Sequence[str | None] | None:
    items = query.selects[0].items if query.selects else []
    if any(item.is_star for item in items):
        return None
    return [item.name.lower() if item.name else "window" for item in items]


def _renamed(
    sql: Sql, columns: Part | None, names: Sequence[str | None] | None, found: Set[str]
) -> Set[str]:
    """Returns the columns of windows with the names after an alias."""
    if columns is None:
        return found
    new = [sql[first].value.lower() for first, _ in sql.split(*columns, ",")]
    if names is None:
        return {*new}
    return {after for before, after in zip(names, new, strict=False) if before in found}


def _combines_windows(sql: Sql, select: Select, inputs: Columns) -> bool:
    """Returns whether a select groups or joins rows, but not by windows."""
    if limits_rows(select):
        return True
    if any(window_calls(sql, select.part, *_WINDOWS)):
        return select.distinct and bool(select.groups)
    if any(subqueries(sql, select)) or _has_pivot(sql, select):
        return True
    if select.groups or select.distinct or is_aggregate(sql, select):
        keys = select.groups or [item.expression for item in select.items if select.distinct]
        known = {**inputs, "": _selected(sql, select, inputs)}
        return not any(_is_window(sql, key, select, known) for key in keys)
    if len(select.sources) > 1 and any(source.query is None for source in select.sources):
        return True
    is_outer = any(not _OUTER.isdisjoint((each.join or "").split()) for each in select.sources)
    return is_outer and not all(
        _compares_window(sql, source, select, inputs) for source in select.sources
    )


def limits_rows(select: Select) -> bool:
    """Returns whether a select keeps some of its rows by their number."""
    return "LIMIT" in select.clauses or "OFFSET" in select.clauses


def _has_pivot(sql: Sql, select: Select) -> bool:
    nested = [source.part for source in select.sources]
    return any(
        sql.word(index) == "PIVOT" and not any(first <= index < last for first, last in nested)
        for index in range(*select.clauses.get("FROM", (0, 0)))
    )


def _compares_window(sql: Sql, source: Source, select: Select, inputs: Columns) -> bool:
    """Returns whether a join compares the windows of a relation without a condition."""
    if inputs.get(_owner(source)):
        return True
    has_star = any(item.is_star for item in select.items)
    return not has_star and source.query is not None and bool(hidden_window(sql, source.query))


def _is_window(sql: Sql, key: Part, select: Select, inputs: Columns) -> bool:
    """Returns whether an expression is a window, or its start or end, or all columns."""
    first, last = key
    while first < last and sql.is_sign(first, "(") and sql.closing.get(first) == last - 1:
        first, last = first + 1, last - 1
    call = next(window_calls(sql, (first, last), *_WINDOWS), None)
    if call is not None and call.name == first:
        return call.closing + 1 == last or column_name(sql, (call.closing, last)) is not None
    if sql.is_sign(last - 1, "*"):
        return last - first == 1 or sql.is_sign(last - 2, ".")
    if column_name(sql, (first, last)) is None:
        return False
    path = [sql[index].value.lower() for index in range(first, last, 2)]
    if path[0] in inputs and len(path) > 1 and path[1] in inputs[path[0]]:
        return True
    own = {"window"} if any(window_calls(sql, select.part, *_WINDOWS)) else set()
    known = own.union(*inputs.values())
    return path[0] in known and (len(path) == 1 or path[1:] in ([each] for each in _FIELDS))
