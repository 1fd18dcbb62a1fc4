"""Stars without some columns: `SELECT * EXCLUDE (a, b)`, `t.* EXCLUDE a`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_BEFORE_STARS = frozenset({"ALL", "DISTINCT", "SELECT"})


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields EXCEPT with the columns in parentheses."""
    for index, token in enumerate(sql.tokens[:-1]):
        if token.word != "EXCLUDE" or not _is_star(sql, index - 1):
            continue
        column = sql[index + 1]
        if column.is_sign("("):
            yield [Edit(token.start, token.end, "EXCEPT")]
        elif column.is_name:
            yield [
                Edit(token.start, column.start, "EXCEPT ("),
                Edit(column.end, column.end, ")"),
            ]


def _is_star(sql: Sql, index: int) -> bool:
    """Returns whether a token is the `*` that selects columns."""
    before = index - 1
    if not sql.is_sign(index, "*"):
        return False
    return sql.word(before) in _BEFORE_STARS or sql.is_sign(before, ",") or sql.is_sign(before, ".")
