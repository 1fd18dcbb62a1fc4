"""Nesting of subqueries in a SQL text, which is limited: the analysis of SQL is recursive."""

from __future__ import annotations

from penstock.sql.text.edits import DialectError
from penstock.sql.text.sql import Sql, read_sql

MAX_NESTING = 100
"""The maximum number of subqueries within each other."""
TOO_DEEP = "too-deep"
SPLIT = "Split the query into several views or transforms."


def check_nesting(text: str) -> None:
    """Raises DialectError at the first subquery that is nested too deeply."""
    sql = read_sql(text)
    if sql is not None:
        _check(sql)


def _check(sql: Sql) -> None:
    open_: list[int] = []
    for index in range(len(sql)):
        if open_ and index == open_[-1]:
            open_.pop()
        elif sql.is_sign(index, "(") and sql.word(index + 1) in ("SELECT", "WITH"):
            open_.append(sql.closing.get(index, len(sql)))
            if len(open_) > MAX_NESTING:
                subquery = sql[index]
                raise DialectError(
                    f"the query is nested too deeply: more than {MAX_NESTING} subqueries within "
                    "each other",
                    subquery.start, subquery.end, SPLIT, TOO_DEEP,
                )  # fmt: skip
