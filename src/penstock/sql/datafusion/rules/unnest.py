"""Elements of arrays in selected items: `unnest(a) -> 'name'`, `unnest(a), unnest(b)`.

Spark has table functions only as whole items, and one in a query. So the elements become a
relation: `FROM t, LATERAL explode(a) AS _unnest(_element)`. The elements of several arrays are
side by side, with null in place of those that a shorter array lacks.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.clauses import Select
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import Call, Sql

_NAMES = ("unnest", "explode")
_ELEMENT = "_element"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields a relation of elements in place of a call within an expression, or of several."""
    query = read_query(sql)
    for select in query.walk() if query is not None else []:
        calls = [*_calls(sql, select)]
        if len(calls) == 1 and _is_whole_item(select, calls[0]):
            continue
        if calls:
            yield _as_relation(sql, select, calls)


def _calls(sql: Sql, select: Select) -> Iterator[Call]:
    """Yields the calls in the selected items."""
    for item in select.items:
        for call in sql.calls(*_NAMES, first=item.expression[0], last=item.expression[1]):
            if len(call.arguments) == 1:
                yield call


def _is_whole_item(select: Select, call: Call) -> bool:
    return any((call.name, call.closing + 1) == item.expression for item in select.items)


def _as_relation(sql: Sql, select: Select, calls: list[Call]) -> list[Edit]:
    arrays = [sql.slice(*call.arguments[0]) for call in calls]
    names = [_ELEMENT, *(f"{_ELEMENT}_{number}" for number in range(2, len(calls) + 1))]
    rows = f"explode({arrays[0]})"
    if len(calls) > 1:
        rows = f"inline(arrays_zip({', '.join(f'coalesce({each}, array())' for each in arrays)}))"
    start = "FROM" not in select.clauses
    place = select.items[-1].part[1] if start else select.clauses["FROM"][1]
    end = sql[place - 1].end
    relation = f"LATERAL {rows} AS _unnest({', '.join(names)})"
    stars = [
        Edit(sql[item.part[0]].end, sql[item.part[0]].end, f" EXCEPT ({', '.join(names)})")
        for item in select.items
        if item.part[1] - item.part[0] == 1 and sql.is_sign(item.part[0], "*")
    ]
    elements = [
        Edit(sql[call.name].start, sql[call.closing].end, name)
        for call, name in zip(calls, names, strict=True)
    ]
    glue = " FROM (SELECT 1) AS _row, " if start else ", "
    return [*elements, *stars, Edit(end, end, f"{glue}{relation}")]
