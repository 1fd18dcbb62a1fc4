"""User-defined aggregates with DISTINCT, ORDER BY, WITHIN GROUP, FILTER or OVER.

The rows of a group are collected by an aggregate of Spark, which supports the clauses, and the
function is called with the list of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.sql.datafusion.rules.ordered_aggregates import (
    SORTED,
    Key,
    by_keys,
    key_fields,
    read_key,
)
from penstock.sql.text.edits import DialectError, Edit, Translation, without_overlaps
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Call, Sql, read_sql
from penstock.sql.user_functions import UserFunctions, row_function, rows_function

_MAX_DEPTH = 50
"""More than the depth of nested aggregates in any query."""


def collect_rows(query: Translation, functions: UserFunctions) -> Translation:
    """Returns a query without clauses of user-defined aggregates.

    Raises DialectError, at a place of the text that `query` came from.
    """
    if not functions.aggregates:
        return query
    for _ in range(_MAX_DEPTH):
        sql = read_sql(query.text)
        if sql is None:
            return query
        try:
            edits = without_overlaps(_edits(sql, functions))
        except DialectError as error:
            raise error.moved(query) from None
        if not edits:
            return query
        query = query.edit(edits)
    return query


def _edits(sql: Sql, functions: UserFunctions) -> Iterator[list[Edit]]:
    for call in sql.calls(*functions.aggregates):
        clauses = _read_clauses(sql, call)
        if not clauses.exist:
            continue
        name = sql[call.name].value
        if name.lower() not in functions.collecting:
            raise DialectError(
                f"{name} is a function in SQL, which has no DISTINCT, ORDER BY, FILTER and OVER",
                sql[call.name].start, sql[clauses.last].end,
                f"write the expression of {name} instead, or define {name} in Python",
            )  # fmt: skip
        yield _collected(sql, call, clauses)


@dataclass
class _Clauses:
    """The clauses of a call. `arguments` ends before ORDER BY, `last` is the last token."""

    arguments: tuple[int, int]
    last: int
    distinct: bool = False
    keys: tuple[Key, ...] = ()
    conditions: tuple[str, ...] = ()
    over: str = ""

    @property
    def exist(self) -> bool:
        """Whether there is a clause."""
        return bool(self.distinct or self.keys or self.conditions or self.over)


def _read_clauses(sql: Sql, call: Call) -> _Clauses:
    distinct = sql.word(call.opening + 1) == "DISTINCT"
    start = call.opening + 1 + (sql.word(call.opening + 1) in ("DISTINCT", "ALL"))
    order = _find_order(sql, call)
    clauses = _Clauses((start, call.closing if order is None else order), call.closing, distinct)
    if order is not None:
        clauses.keys = _keys(sql, order, call.closing)
    after = call.closing + 1
    if sql.words(after, "IGNORE", "NULLS"):
        values = sql.split(*clauses.arguments, ",")
        clauses.conditions = tuple(f"({sql.slice(*value)}) IS NOT NULL" for value in values)
        after += 2
    if sql.words(after, "WITHIN", "GROUP") and sql.is_sign(after + 2, "("):
        closing = sql.closing.get(after + 2, after + 2)
        clauses.keys += _keys(sql, after + 3, closing)
        after = closing + 1
    if sql.word(after) == "FILTER" and sql.is_sign(after + 1, "("):
        closing = sql.closing.get(after + 1, after + 1)
        clauses.conditions += (f"({sql.slice(after + 3, closing)})",)
        after = closing + 1
    if sql.word(after) == "OVER" and after + 1 < len(sql):
        closing = sql.closing.get(after + 1, after + 1)
        clauses.over = f" {sql.slice(after, closing + 1)}"
        after = closing + 1
    clauses.last = after - 1
    return clauses


def _find_order(sql: Sql, call: Call) -> int | None:
    """Returns the token ORDER among the arguments of a call, or None."""
    for index in range(call.opening + 1, call.closing):
        if sql.words(index, "ORDER", "BY") and sql.enclosing(index) == call.opening:
            return index
    return None


def _keys(sql: Sql, first: int, last: int) -> tuple[Key, ...]:
    """Returns the keys of `ORDER BY ...`."""
    return tuple(read_key(sql, *part) for part in sql.split(first + 2, last, ","))


def _collected(sql: Sql, call: Call, clauses: _Clauses) -> list[Edit]:
    """Returns the edits that collect rows with the clauses. Raises DialectError."""
    name, keys = sql[call.name].value, clauses.keys
    first, last = clauses.arguments
    if clauses.distinct:
        _check_keys(sql, call, clauses)
    condition = " AND ".join(clauses.conditions)
    collect = "collect_set" if clauses.distinct else "collect_list"
    before = f"{quoted(rows_function(name))}({SORTED if keys else ''}{collect}("
    before += f"CASE WHEN {condition} THEN " if condition else ""
    before += f"struct({key_fields(keys)}" if keys else ""
    before += f"{quoted(row_function(name))}("
    after = ")" + (" AS _value)" if keys else "") + (" END" if condition else "") + ")"
    after += clauses.over + (by_keys(keys) if keys else "") + ")"
    start, end = sql[call.name].start, sql[clauses.last].end
    if first == last:
        return [Edit(start, end, before + after)]
    return [Edit(start, sql[first].start, before), Edit(sql[last - 1].end, end, after)]


def _check_keys(sql: Sql, call: Call, clauses: _Clauses) -> None:
    """Checks that the order of distinct rows is an order of their values."""
    values = {sql.slice(*value).lower() for value in sql.split(*clauses.arguments, ",")}
    for key in clauses.keys:
        if key.text.lower() not in values:
            name = sql[call.name].value
            raise DialectError(
                f"{name}(DISTINCT) is ordered by {key.text}, which is not one of its arguments: "
                "equal values may have several places",
                sql[call.name].start, sql[clauses.last].end,
                f"order by an argument of {name}",
            )  # fmt: skip
