"""Windowed queries within a query that needs complete windows, which become transforms.

OVER, groups without a window, and joins with other relations are computed on the rows of complete
windows. The groups of a window are computed as a stream, in a transform of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.spec.script.tokens import Text
from penstock.sql.dialect.lineage import is_aggregate, window_calls
from penstock.sql.dialect.query import Part, Query, Select, read_query, subqueries
from penstock.sql.dialect.tokens import Sql, read_sql
from penstock.sql.dialect.window_calls import SPARK_WINDOWS

_NO_BLANK = re.compile(r"[^\r\n]")


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
    for number, (part, is_table, prefix) in enumerate(_windowed(sql, clauses), 1):
        start, end = sql[part[0]].start, sql[part[1] - 1].end
        helper = f"{name.value}_windows" + (f"_{number}" if number > 1 else "")
        reference = helper if is_table else f"SELECT * FROM {helper}"
        if len(reference) > end - start:
            return query, []
        first, last = (part[0] + 1, part[1] - 1) if is_table else part
        inner = _inner_query(sql, query, text, (first, last), prefix)
        parts.append((inner._replace(value=helper), inner))
        text = text[:start] + reference + _blanks(text[start + len(reference) : end]) + text[end:]
    return query._replace(value=text), parts


def _inner_query(sql: Sql, query: Text, text: str, part: Part, prefix: int | None) -> Text:
    """Returns a windowed query, after the table expressions up to the token `prefix`."""
    start, end = sql[part[0]].start, sql[part[1] - 1].end
    value = query.value[start:end]
    if prefix is not None:
        ctes = sql[prefix].end
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
            tokens = sql.tokens[slice(*item.expression)]
            is_window = any(window_calls(sql, item.expression, *SPARK_WINDOWS)) or any(
                token.value.lower() in names for token in tokens
            )
            if item.name and is_window:
                names.add(item.name.lower())
    return names


def _combines_windows(sql: Sql, select: Select, windows: set[str]) -> bool:
    """Returns whether a select groups or joins rows, but not by windows."""
    if any(window_calls(sql, select.part, *SPARK_WINDOWS)):
        return False
    if any(subqueries(sql, select)):
        return True
    if select.groups or select.distinct or is_aggregate(sql, select):
        keys = select.groups or [item.expression for item in select.items if select.distinct]
        return not any(_is_window(sql, key, windows) for key in keys)
    return len(select.sources) > 1 and any(source.query is None for source in select.sources)


def _is_window(sql: Sql, key: Part, windows: set[str]) -> bool:
    """Returns whether a key is a window, or its start or end, and no expression of them."""
    tokens = sql.tokens[slice(*key)]
    names = {token.value.lower() for token in tokens}
    return not names.isdisjoint({*windows, "*"}) and "(" not in names


def _windowed(sql: Sql, clauses: Query) -> Iterator[tuple[Part, bool, int | None]]:
    """Yields the outermost windowed queries that need no complete windows.

    They are tables in parentheses, or table expressions. The number is the last token of the table
    expressions that a query reads.
    """
    last = None
    for cte in clauses.ctes.values():
        if _is_windowed(sql, cte) and not cte.ctes:
            yield cte.part, False, last if _reads(sql, cte, clauses) else None
        else:
            yield from _windowed_tables(sql, cte, clauses, last)
        last = cte.part[1]
        while sql.is_sign(last + 1, ")"):
            last += 1
    yield from _windowed_tables(sql, clauses, clauses, last)


def _windowed_tables(
    sql: Sql, query: Query, clauses: Query, last: int | None
) -> Iterator[tuple[Part, bool, int | None]]:
    for select in query.selects:
        for subquery in subqueries(sql, select):
            yield from _windowed_tables(sql, subquery, clauses, last)
        for source in select.sources:
            if source.query is None:
                continue
            if _is_windowed(sql, source.query):
                closing = sql.closing[source.part[0]]
                prefix = last if _reads(sql, source.query, clauses) else None
                yield (source.part[0], closing + 1), True, prefix
            else:
                yield from _windowed_tables(sql, source.query, clauses, last)


def _is_windowed(sql: Sql, query: Query) -> bool:
    """Returns whether a query groups by windows, and needs no complete windows itself."""
    if _needs_complete_windows(sql, query):
        return False
    return any(
        select.groups and any(window_calls(sql, select.part, *SPARK_WINDOWS))
        for select in query.walk()
    )


def _reads(sql: Sql, query: Query, clauses: Query) -> bool:
    """Returns whether a query reads one of the table expressions."""
    return any(token.value.lower() in clauses.ctes for token in sql.tokens[slice(*query.part)])


def _has_over(sql: Sql, part: Part) -> bool:
    return any(sql.word(index) == "OVER" and sql.is_sign(index - 1, ")") for index in range(*part))
