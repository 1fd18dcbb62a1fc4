"""Aggregates of distinct values in windows by the set of the values, which takes less state.

`count(DISTINCT a)` becomes the size of the set. Other aggregates: see `engine.windows.distinct`.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.clauses import Select
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Call, Sql

_LISTS = ("array_agg", "collect_list")
_TEXTS = ("listagg", "string_agg")


def distinct_edits(sql: Sql, select: Select) -> Iterator[Edit]:
    """Yields the edits of the aggregates of a query."""
    nested = [source.part for source in select.sources if source.query is not None]
    for call in sql.calls(first=select.part[0], last=select.part[1]):
        if any(first <= call.name < last for first, last in nested):
            continue
        if sql.word(call.opening + 1) == "DISTINCT":
            yield from _translate(sql, call)


def _translate(sql: Sql, call: Call) -> Iterator[Edit]:
    name, token = sql[call.name].value.lower(), sql[call.name]
    distinct = sql[call.opening + 1]
    values = sql.slice(call.opening + 2, call.closing)
    if name == "count":
        if len(call.arguments) > 1:
            parts = [(call.opening + 2, call.arguments[0][1]), *call.arguments[1:]]
            known = " AND ".join(f"{sql.slice(*part)} IS NOT NULL" for part in parts)
            values = f"CASE WHEN {known} THEN struct({values}) END"
        yield Edit(token.start, distinct.end, "CAST(size(collect_set(")
        if len(call.arguments) > 1:
            yield Edit(sql[call.opening + 2].start, sql[call.closing - 1].end, values)
        end = _end(sql, call)
        yield Edit(end, end, ") AS BIGINT)")
    elif name in _TEXTS:
        yield _joined(sql, call)
    elif name in _LISTS:
        yield Edit(token.start, distinct.end, "collect_set(")
    elif name in ("min", "max", "collect_set", "bool_and", "bool_or", "any_value"):
        yield Edit(distinct.start, distinct.end, "")


def _joined(sql: Sql, call: Call) -> Edit:
    """Returns the text of distinct values, which may be sorted by WITHIN GROUP."""
    value = sql.slice(call.opening + 2, call.arguments[0][1])
    separator = sql.slice(*call.arguments[1]) if len(call.arguments) > 1 else "''"
    last, descending = call.closing, False
    if sql.words(last + 1, "WITHIN", "GROUP") and sql.is_sign(last + 3, "("):
        first, last = last + 3, sql.closing.get(last + 3, last)
        descending = any(sql.word(index) == "DESC" for index in range(first, last))
    filter_ = ""
    if sql.word(last + 1) == "FILTER" and sql.is_sign(last + 2, "("):
        first, last = last + 1, sql.closing.get(last + 2, last)
        filter_ = f" {sql.slice(first, last + 1)}"
    values = f"sort_array(collect_set({value}){filter_}, {str(not descending).lower()})"
    text = f"CASE WHEN count({value}){filter_} > 0 THEN array_join({values}, {separator}) END"
    return Edit(sql[call.name].start, sql[last].end, text)


def _end(sql: Sql, call: Call) -> int:
    """Returns the end of a call, after FILTER (...)."""
    after = call.closing + 1
    if sql.word(after) == "FILTER" and sql.is_sign(after + 1, "("):
        after = sql.closing.get(after + 1, after) + 1
    return sql[after - 1].end
