"""Queries of Arroyo: those of DataFusion, and missing values that sinks write.

A missing value of `->` is written as the text `null`.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.datafusion.json_keys import key_end
from penstock.sql.datafusion.meaning import queries
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Part
from penstock.sql.text.edits import Edit, Translation
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import Sql


def translate_query(text: str | Translation, *, is_written: bool = False) -> Translation:
    """Returns a query or expression of Arroyo with functions that both dialects have.

    `is_written` is whether a sink writes the rows.
    """
    return queries.translate_query(text, *([_written_values] if is_written else []))


def _written_values(sql: Sql) -> Iterator[Edit]:
    """Yields the text `null` for the missing values of `->` among the columns of a query."""
    query = read_query(sql)
    for select in query.selects if query is not None else []:
        for item in select.items:
            first, last = item.expression
            if _is_json_value(sql, item.expression):
                yield Edit(sql[first].start, sql[first].start, "coalesce(")
                yield Edit(sql[last - 1].end, sql[last - 1].end, ", 'null')")


def _is_json_value(sql: Sql, part: Part) -> bool:
    """Returns whether an expression is `a -> 'b'`, also with further keys, or `json_get(...)`."""
    if whole_call(sql, part, "json_get") is not None:
        return True
    first, last = part
    index, end = _operator_after(sql, first, last), None
    while index is not None and index < last and sql.is_sign(index, "->"):
        index = end = key_end(sql, index + 1)
    return end == last


def _operator_after(sql: Sql, first: int, last: int) -> int | None:
    """Returns the first `->` whose operand begins at a token, or None."""
    signs = (index for index in range(first, last) if sql.is_sign(index, "->"))
    return next((index for index in signs if sql.operand_before(index) == first), None)
