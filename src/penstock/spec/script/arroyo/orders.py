"""The order of nulls: last in ascending order and first in descending order. Spark has the reverse.

Source: DataFusion, "ORDER BY".
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_ENDS = frozenset({"ROWS", "RANGE", "GROUPS", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT",
                   "INTERSECT", "WINDOW"})  # fmt: skip


def null_orders(sql: Sql) -> Iterator[Edit]:
    """Yields the place of nulls for the keys of ORDER BY that do not have it.

    The order of WITHIN GROUP is that of percentiles, which leave out nulls.
    """
    for index in range(len(sql)):
        if not sql.words(index, "ORDER", "BY") or sql.words(index - 3, "WITHIN", "GROUP"):
            continue
        end = _end(sql, index + 2)
        for first, last in sql.split(index + 2, end, ","):
            if first < last and sql.word(last - 2) != "NULLS":
                nulls = "FIRST" if sql.word(last - 1) == "DESC" else "LAST"
                yield Edit(sql[last - 1].end, sql[last - 1].end, f" NULLS {nulls}")


def _end(sql: Sql, index: int) -> int:
    """Returns the token after the keys that begin at `index`."""
    while index < len(sql):
        if sql.word(index) in _ENDS or sql.is_sign(index, ")"):
            break
        index = sql.closing.get(index, index) + 1
    return index
