"""Elements of arrays within an expression: `unnest(a) -> 'name'`, `unnest(a) + 1`.

Spark has table functions only as whole items, so the elements become a relation:
`FROM t, LATERAL explode(a) AS _unnest(_element)`.
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
    """Yields a relation of elements in place of a call within an expression."""
    query = read_query(sql)
    for select in query.walk() if query is not None else []:
        call = _nested_call(sql, select)
        if call is not None and "FROM" in select.clauses:
            yield _as_relation(sql, select, call)


def _nested_call(sql: Sql, select: Select) -> Call | None:
    """Returns the first call in the selected items that is not a whole item."""
    for item in select.items:
        for call in sql.calls(*_NAMES, first=item.expression[0], last=item.expression[1]):
            if (call.name, call.closing + 1) != item.expression and len(call.arguments) == 1:
                return call
    return None


def _as_relation(sql: Sql, select: Select, call: Call) -> list[Edit]:
    array = sql.slice(*call.arguments[0])
    end = sql[select.clauses["FROM"][1] - 1].end
    relation = f", LATERAL explode({array}) AS _unnest({_ELEMENT})"
    stars = [
        Edit(sql[item.part[0]].end, sql[item.part[0]].end, f" EXCEPT ({_ELEMENT})")
        for item in select.items
        if item.part[1] - item.part[0] == 1 and sql.is_sign(item.part[0], "*")
    ]
    element = Edit(sql[call.name].start, sql[call.closing].end, _ELEMENT)
    return [element, *stars, Edit(end, end, relation)]
