"""The first row of each group: `SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, c`.

The row is the first value of a struct of the selected columns. The order of the result is not
kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.clauses import Select
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import Sql

_ROW = "_first"
_AFTER = ("LIMIT", "OFFSET")
"""The clauses of the whole result."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields a query of first values in place of DISTINCT ON."""
    query = read_query(sql)
    for select in query.walk() if query is not None else []:
        if select.distinct_on is not None and "GROUP" not in select.clauses:
            yield _as_groups(sql, select)


def _as_groups(sql: Sql, select: Select) -> list[Edit]:
    assert select.distinct_on is not None
    first, last = select.part
    order = select.clauses.get("ORDER")
    keys = f" ORDER BY {sql.slice(*order)}" if order is not None else ""
    start, end = select.items[0].part[0], select.items[-1].part[1]
    rest = min(
        (select.clauses[word][0] - 1 for word in _AFTER if word in select.clauses), default=last
    )
    rows = order[0] - 2 if order is not None else rest
    groups = f" GROUP BY {sql.slice(*select.distinct_on)}) AS {_ROW}s"
    return [
        Edit(
            sql[first].start, sql[start].start,
            f"SELECT {_ROW}.* FROM (SELECT first_value(struct(",
        ),
        Edit(sql[end - 1].end, sql[end - 1].end, f"){keys}) AS {_ROW}"),
        Edit(sql[rows - 1].end, sql[rest - 1].end, groups),
    ]  # fmt: skip
