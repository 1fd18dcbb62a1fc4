"""Windowed queries within a query that needs complete windows, which become transforms.

OVER, groups without a window, and joins with other relations are computed on the rows of complete
windows. The groups of a window are computed as a stream, in a transform of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Set
from dataclasses import replace
from typing import NamedTuple

from penstock.spec.script.tokens import Text
from penstock.sql.dialect.lineage import is_aggregate, window_calls
from penstock.sql.dialect.query import (
    Part,
    Query,
    Select,
    column_name,
    read_query,
    subqueries,
)
from penstock.sql.dialect.tokens import Sql, read_sql
from penstock.sql.dialect.window_calls import SPARK_WINDOWS

_WINDOWS = (*SPARK_WINDOWS, "calendar_window")
_NO_BLANK = re.compile(r"[^\r\n]")


class _Windowed(NamedTuple):
    """A windowed query that becomes a transform.

    `prefix` is the last token of the table expressions that it reads, or None. `form` is the text
    that reads the transform in its place. `start` is the first token that this text replaces.
    """

    part: Part
    start: int
    form: str
    prefix: int | None


_TABLE, _QUERY, _DISTINCT = "{}", "SELECT * FROM {}", "* FROM {}"


def lift_windows(query: Text, name: Text) -> tuple[Text, list[tuple[Text, Text]]]:
    """Returns a query that reads its windowed queries by name, and their names and queries.

    The queries have the same length, so that positions in them remain.
    """
    sql = read_sql(query.value)
    clauses = read_query(sql) if sql is not None else None
    if sql is None or clauses is None or not _needs_complete_windows(sql, clauses):
        return query, []
    parts: list[tuple[Text, Text]] = []
    text = query.value
    for number, lifted in enumerate(_windowed(sql, clauses), 1):
        is_table = lifted.form == _TABLE
        last = lifted.part[1] - 1 + is_table
        start, end = sql[lifted.start].start, sql[last].end
        helper = f"{name.value}_windows" + (f"_{number}" if number > 1 else "")
        reference = lifted.form.format(helper)
        if len(reference) > end - start:
            return query, []
        inner = _inner_query(sql, query, text, lifted)
        parts.append((inner._replace(value=helper), inner))
        text = text[:start] + reference + _blanks(text[start + len(reference) : end]) + text[end:]
    return query._replace(value=text), parts


def _inner_query(sql: Sql, query: Text, text: str, lifted: _Windowed) -> Text:
    """Returns a windowed query, after the table expressions that it reads."""
    first, last = lifted.part
    start, end = sql[first].start, sql[last - 1].end
    value = query.value[start:end]
    if lifted.form == _DISTINCT:
        select = sql[first].end - start
        items = sql[lifted.start].start - start
        value = value[:select] + _blanks(value[select:items]) + value[items:]
    if lifted.prefix is not None:
        ctes = sql[lifted.prefix].end
        value = text[:ctes] + _blanks(text[ctes:start]) + value
        start = 0
    return Text(value, query.start + start, query.start + end)


def _blanks(text: str) -> str:
    return _NO_BLANK.sub(" ", text)


def _needs_complete_windows(sql: Sql, query: Query) -> bool:
    """Returns whether the rows of open windows would change what the query computes."""
    if _has_over(sql, query.part):
        return True
    if any("ALL" not in each for inner in query.queries() for each in inner.operators):
        return True
    windows = _window_names(sql, query)
    return any(_combines_windows(sql, select, windows) for select in query.walk())


def _window_names(sql: Sql, query: Query) -> set[str]:
    """Returns the names of columns that are windows, or their start or end."""
    names = {"window"}
    for select in reversed([*query.walk()]):
        for item in select.items:
            if item.name and _is_window(sql, item.expression, names):
                names.add(item.name.lower())
    return names


def _combines_windows(sql: Sql, select: Select, windows: set[str]) -> bool:
    """Returns whether a select groups or joins rows, but not by windows."""
    if any(window_calls(sql, select.part, *_WINDOWS)):
        return select.distinct and bool(select.groups)
    if any(subqueries(sql, select)):
        return True
    if select.groups or select.distinct or is_aggregate(sql, select):
        keys = select.groups or [item.expression for item in select.items if select.distinct]
        return not any(_is_window(sql, key, windows) for key in keys)
    return len(select.sources) > 1 and any(source.query is None for source in select.sources)


def _is_window(sql: Sql, key: Part, windows: set[str]) -> bool:
    """Returns whether an expression is a window, or its start or end, or all columns."""
    first, last = key
    while first < last and sql.is_sign(first, "(") and sql.closing.get(first) == last - 1:
        first, last = first + 1, last - 1
    call = next(window_calls(sql, (first, last), *_WINDOWS), None)
    if call is not None and call.name == first:
        return call.closing + 1 == last or column_name(sql, (call.closing, last)) is not None
    if sql.is_sign(last - 1, "*"):
        return last - first == 1 or sql.is_sign(last - 2, ".")
    names = {sql[index].value.lower() for index in range(first, last, 2)}
    return column_name(sql, (first, last)) is not None and not names.isdisjoint(windows)


def _windowed(sql: Sql, clauses: Query) -> Iterator[_Windowed]:
    """Yields the outermost windowed queries that need no complete windows, in their order."""
    last = None
    for cte in clauses.ctes.values():
        if _is_windowed(sql, cte) and not cte.ctes:
            prefix = last if _reads(sql, cte.part, clauses.ctes) else None
            yield _Windowed(cte.part, cte.part[0], _QUERY, prefix)
        else:
            yield from _windowed_tables(sql, cte, clauses, last)
        last = cte.part[1]
        while sql.is_sign(last + 1, ")"):
            last += 1
    yield from _windowed_tables(sql, replace(clauses, ctes={}), clauses, last)


def _windowed_tables(
    sql: Sql, query: Query, clauses: Query, last: int | None, hidden: Set[str] = frozenset()
) -> Iterator[_Windowed]:
    """Yields the windowed queries within a query.

    `last` is the last token of the table expressions of `clauses` before. A query that reads one of
    the `hidden` table expressions cannot be moved.
    """

    def windowed(part: Part, start: int, form: str) -> _Windowed | None:
        if _reads(sql, part, hidden):
            return None
        return _Windowed(part, start, form, last if _reads(sql, part, clauses.ctes) else None)

    hidden = {*hidden, *query.ctes}
    for cte in query.ctes.values():
        found = windowed(cte.part, cte.part[0], _QUERY) if _is_windowed(sql, cte) else None
        yield from [found] if found else _windowed_tables(sql, cte, clauses, last, hidden)
    is_compared = any("ALL" not in each for each in query.operators)
    for select in query.selects:
        if _groups_by_windows(sql, select) and (is_compared or select.distinct):
            start, form = select.part[0], _QUERY
            if select.distinct:
                start, form = select.first_item, _DISTINCT
            if not _has_over(sql, select.part) and (found := windowed(select.part, start, form)):
                yield found
                continue
        for subquery in subqueries(sql, select):
            yield from _windowed_tables(sql, subquery, clauses, last, hidden)
        for source in select.sources:
            if source.query is None:
                continue
            opening, found = source.part[0], None
            if _is_windowed(sql, source.query):
                part = (opening + 1, sql.closing[opening])
                found = windowed(part, opening, _TABLE)
            yield from (
                [found] if found else _windowed_tables(sql, source.query, clauses, last, hidden)
            )


def _is_windowed(sql: Sql, query: Query) -> bool:
    """Returns whether a query groups by windows, and needs no complete windows itself."""
    if _needs_complete_windows(sql, query):
        return False
    return any(_groups_by_windows(sql, select) for select in query.walk())


def _groups_by_windows(sql: Sql, select: Select) -> bool:
    return bool(select.groups) and any(window_calls(sql, select.part, *_WINDOWS))


def _reads(sql: Sql, part: Part, ctes: Collection[str]) -> bool:
    """Returns whether a query reads one of the table expressions."""
    return any(token.value.lower() in ctes for token in sql.tokens[slice(*part)])


def _has_over(sql: Sql, part: Part) -> bool:
    return any(sql.word(index) == "OVER" and sql.is_sign(index - 1, ")") for index in range(*part))
