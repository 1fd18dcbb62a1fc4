"""Windowed queries within a query that needs complete windows, which become transforms.

OVER, groups without a window, and joins with other relations are computed on the rows of complete
windows. The groups of a window are computed as a stream, in a transform of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from dataclasses import replace
from typing import NamedTuple

from penstock.core.names import derived_name
from penstock.spec.script.complete_windows import (
    groups_by_windows,
    has_over,
    limits_rows,
    needs_complete_windows,
)
from penstock.spec.script.hidden_windows import hidden_window, reads_by_name
from penstock.spec.script.ranked_groups import split_groups
from penstock.sql.text.clauses import Part, Query, Select
from penstock.sql.text.edits import Edit, Translation
from penstock.sql.text.query import read_query, subqueries
from penstock.sql.text.sql import Sql, read_sql

HELPER = "{helper}"
"""The place of the name of a transform in the texts of edits."""


class Lifted(NamedTuple):
    """A transform: its name, its query, and its part of the text that the query is from."""

    name: str
    query: Translation
    start: int
    end: int


class _Windowed(NamedTuple):
    """A windowed query that becomes a transform.

    `prefix` is the last token of the table expressions that it reads, or None. `outer` are the
    edits of the query around it, which then reads the transform, and `inner` the edits of its own.
    """

    part: Part
    prefix: int | None
    outer: list[Edit]
    inner: list[Edit]


def lift_windows(query: Translation, name: str) -> tuple[Translation, list[Lifted]]:
    """Returns a query that reads its windowed queries by name, and these queries."""
    sql = read_sql(query.text)
    clauses = read_query(sql) if sql is not None else None
    if sql is None or clauses is None or not sql.is_closed:
        return query, []
    if not needs_complete_windows(sql, clauses):
        return query, []
    parts: list[Lifted] = []
    edits: list[Edit] = []
    for number, windowed in enumerate(_Search(sql, clauses).windowed(), 1):
        helper = derived_name(name, "_windows" + (f"_{number}" if number > 1 else ""))
        parts.append(_lifted(sql, query, edits, windowed, helper))
        edits += [each._replace(text=each.text.replace(HELPER, helper)) for each in windowed.outer]
    return query.edit(edits), parts


def _lifted(
    sql: Sql, query: Translation, edits: list[Edit], windowed: _Windowed, helper: str
) -> Lifted:
    """Returns a windowed query, after the table expressions that it reads.

    `edits` are those of the text before it.
    """
    first, last = windowed.part
    begin, start, end = 0, sql[first].start, sql[last - 1].end
    around = [Edit(end, len(query.text), "")]
    if windowed.prefix is None:
        begin = start
        around.append(Edit(0, start, ""))
    else:
        ctes = sql[windowed.prefix].end
        around += [each for each in edits if each.end <= ctes]
        around.append(Edit(ctes, start, " "))
    text = query.edit([*around, *windowed.inner])
    return Lifted(helper, text, query.origin(begin), query.origin(end - 1) + 1)


class _Search:
    """The outermost windowed queries of a query that need no complete windows."""

    def __init__(self, sql: Sql, clauses: Query) -> None:
        self._sql, self._clauses = sql, clauses
        self._joins_by_name = reads_by_name(clauses)

    def windowed(self) -> Iterator[_Windowed]:
        """Yields the windowed queries in their order."""
        sql, clauses = self._sql, self._clauses
        last = None
        for cte in clauses.ctes.values():
            if self._is_windowed(cte) and not cte.ctes:
                prefix = last if _reads(sql, cte.part, clauses.ctes) else None
                yield self._whole(cte, prefix)
            else:
                yield from self._tables(cte, last)
            last = cte.part[1]
            while sql.is_sign(last + 1, ")"):
                last += 1
        yield from self._tables(replace(clauses, ctes={}), last)

    def _tables(
        self, query: Query, last: int | None, hidden: Set[str] = frozenset()
    ) -> Iterator[_Windowed]:
        """Yields the windowed queries within a query.

        `last` is the last token of the table expressions of all before. A query that reads one of
        the `hidden` table expressions cannot be moved.
        """
        hidden = {*hidden, *query.ctes}
        for cte in query.ctes.values():
            if self._is_windowed(cte) and not _reads(self._sql, cte.part, hidden):
                yield self._whole(cte, self._prefix(cte.part, last))
            else:
                yield from self._tables(cte, last, hidden)
        is_compared = any("ALL" not in each for each in query.operators)
        for select in query.selects:
            found = self._select(select, last, is_compared)
            if found is not None and not _reads(self._sql, select.part, hidden):
                yield found
                continue
            for subquery in subqueries(self._sql, select):
                yield from self._tables(subquery, last, hidden)
            for source in select.sources:
                if source.query is None:
                    continue
                opening = source.part[0]
                part = opening + 1, self._sql.closing[opening]
                if self._is_windowed(source.query) and not _reads(self._sql, part, hidden):
                    end = self._sql[part[1]].end
                    outer = [Edit(self._sql[opening].start, end, HELPER)]
                    inner = self._hidden_window(source.query)
                    yield _Windowed(part, self._prefix(part, last), outer, inner)
                else:
                    yield from self._tables(source.query, last, hidden)

    def _whole(self, cte: Query, prefix: int | None) -> _Windowed:
        """Returns a table expression, in whose place all rows of the transform are read."""
        return _Windowed(cte.part, prefix, [self._all_rows(cte.part)], self._hidden_window(cte))

    def _select(self, select: Select, last: int | None, is_compared: bool) -> _Windowed | None:
        """Returns a windowed select of a query whose other clauses need complete windows."""
        sql = self._sql
        if not groups_by_windows(sql, select):
            return None
        if has_over(sql, select.part) or limits_rows(select):
            split = split_groups(sql, select, HELPER)
            if split is None:
                return None
            inner, outer = split
        elif select.distinct:
            first, end = sql[select.first_item].start, sql[select.part[1] - 1].end
            outer, inner = [Edit(first, end, f"* FROM {HELPER}")], []
        elif is_compared:
            outer, inner = [self._all_rows(select.part)], []
        else:
            return None
        if select.distinct:
            inner.append(Edit(sql[select.part[0]].end, sql[select.first_item].start, " "))
        return _Windowed(select.part, self._prefix(select.part, last), outer, inner)

    def _all_rows(self, part: Part) -> Edit:
        first, last = part
        return Edit(self._sql[first].start, self._sql[last - 1].end, f"SELECT * FROM {HELPER}")

    def _prefix(self, part: Part, last: int | None) -> int | None:
        return last if _reads(self._sql, part, self._clauses.ctes) else None

    def _hidden_window(self, query: Query) -> list[Edit]:
        return hidden_window(self._sql, query) if self._joins_by_name else []

    def _is_windowed(self, query: Query) -> bool:
        """Returns whether a query groups by windows, and needs no complete windows itself."""
        if needs_complete_windows(self._sql, query):
            return False
        return any(groups_by_windows(self._sql, select) for select in query.walk())


def _reads(sql: Sql, part: Part, ctes: Collection[str]) -> bool:
    """Returns whether a query reads one of the table expressions."""
    return any(token.value.lower() in ctes for token in sql.tokens[slice(*part)])
