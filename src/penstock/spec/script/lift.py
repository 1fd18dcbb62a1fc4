"""Windowed queries within a query with OVER, which become transforms of their own.

The groups of a window are computed as a stream; OVER is computed on the rows of complete windows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.spec.script.tokens import Text
from penstock.sql.dialect.lineage import window_calls
from penstock.sql.dialect.query import Part, Query, read_query
from penstock.sql.dialect.tokens import Sql, read_sql

_SPARK_WINDOW = ("window", "session_window")
_NO_BLANK = re.compile(r"[^\r\n]")


def lift_windows(query: Text, name: Text) -> tuple[Text, list[tuple[Text, Text]]]:
    """Returns a query that reads its windowed queries by name, and their names and queries.

    The query has the same length, so that positions in it remain.
    """
    sql = read_sql(query.value)
    clauses = read_query(sql) if sql is not None else None
    if sql is None or clauses is None or not _has_over(sql, (0, len(sql))):
        return query, []
    parts: list[tuple[Text, Text]] = []
    text = query.value
    for number, (part, is_table) in enumerate(_windowed(sql, clauses), 1):
        start, end = sql[part[0]].start, sql[part[1] - 1].end
        helper = f"{name.value}_windows" + (f"_{number}" if number > 1 else "")
        reference = helper if is_table else f"SELECT * FROM {helper}"
        if len(reference) > end - start:
            return query, []
        blanks = _NO_BLANK.sub(" ", text[start + len(reference) : end])
        text = text[:start] + reference + blanks + text[end:]
        first, last = (part[0] + 1, part[1] - 1) if is_table else part
        inner = Text(
            query.value[sql[first].start : sql[last - 1].end],
            query.start + sql[first].start,
            query.start + sql[last - 1].end,
        )
        parts.append((inner._replace(value=helper), inner))
    return query._replace(value=text), parts


def _windowed(sql: Sql, query: Query) -> Iterator[tuple[Part, bool]]:
    """Yields the outermost windowed queries without OVER: tables in parentheses, or CTEs."""
    names = set(query.ctes)
    for cte in query.ctes.values():
        if _is_windowed(sql, cte) and not _reads(sql, cte, names):
            yield cte.part, False
        else:
            yield from _windowed(sql, cte)
    for select in query.selects:
        for source in select.sources:
            if source.query is None:
                continue
            if _is_windowed(sql, source.query) and not _reads(sql, source.query, names):
                closing = sql.closing[source.part[0]]
                yield (source.part[0], closing + 1), True
            else:
                yield from _windowed(sql, source.query)


def _is_windowed(sql: Sql, query: Query) -> bool:
    """Returns whether a query groups by windows, and has no OVER."""
    if _has_over(sql, query.part):
        return False
    return any(
        select.groups
        and (
            any(window_calls(sql, select.part))
            or any(sql.calls(*_SPARK_WINDOW, first=select.part[0], last=select.part[1]))
        )
        for select in query.walk()
    )


def _reads(sql: Sql, query: Query, names: set[str]) -> bool:
    return any(token.value.lower() in names for token in sql.tokens[slice(*query.part)])


def _has_over(sql: Sql, part: Part) -> bool:
    return any(sql.word(index) == "OVER" and sql.is_sign(index - 1, ")") for index in range(*part))
