"""Windows that queries group by and do not select, as columns that joins compare."""

from __future__ import annotations

from penstock.sql.dialect.window_calls import WINDOWS
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Query
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_WINDOW = "_window"
_COMPARED = ("tumble", "hop")
"""The windows that a join compares also if a query does not select them."""


def reads_by_name(query: Query) -> bool:
    """Returns whether a query has joins, and reads the columns of all relations by their names."""
    selects = [*query.walk()]
    has_join = any(len(select.sources) > 1 for select in selects)
    return has_join and not any(item.is_star for select in selects for item in select.items)


def hidden_window(sql: Sql, query: Query) -> list[Edit]:
    """Returns the edit that selects the window of a query that selects no part of it."""
    if len(query.selects) != 1 or query.columns is not None:
        return []
    (select,) = query.selects
    words = {sql.word(index) for item in select.items for index in range(*item.part)}
    if not words.isdisjoint({"WINDOW", *(name.upper() for name in WINDOWS)}):
        return []
    for part in select.groups:
        if whole_call(sql, part, *_COMPARED) is not None:
            end = sql[select.items[-1].part[1] - 1].end
            return [Edit(end, end, f", {sql.slice(*part)} AS {_WINDOW}")]
    return []
