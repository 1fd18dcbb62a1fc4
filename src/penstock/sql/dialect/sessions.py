"""Sessions: `session(gap)` in terms of `session_window` of Spark.

A row belongs to a session if it is less than the gap later than the last row. Spark accepts rows
that are later by exactly the gap, so its gap is a microsecond less, which the end makes up for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.sql.dialect.query import Select, column_name
from penstock.sql.dialect.text import Edit
from penstock.sql.dialect.tokens import Call, Sql

_COLUMN = "session_window"
_LATER = " + INTERVAL '0.000001' SECOND"


def session_edits(
    sql: Sql, select: Select, calls: Sequence[Call], window: str, time: str | None
) -> Iterator[Edit]:
    """Yields the edits of the sessions of a query. `window` is the session in Spark SQL.

    Spark requires a key besides the session: without one, `time` gives a constant key.
    """
    in_items = {}
    for index, item in enumerate(select.items):
        for call in calls:
            if item.expression == (call.name, call.closing + 1):
                in_items[index] = (item.name or "window").lower()
                alias = "" if item.has_alias else " AS window"
                yield Edit(sql[call.name].start, sql[call.closing].end, _struct(window) + alias)
    for call in calls:
        if not any(item.part[0] <= call.name < item.part[1] for item in select.items):
            yield Edit(sql[call.name].start, sql[call.closing].end, window)
    for first, last in select.groups:
        name = (column_name(sql, (first, last)) or "").lower()
        number = sql[first].value if last - first == 1 else ""
        if any(number == str(index + 1) or name == alias for index, alias in in_items.items()):
            yield Edit(sql[first].start, sql[last - 1].end, window)
    if time is not None:
        end = sql[select.groups[0][1] - 1].end
        yield Edit(end, end, f", pmod(hash({time}), 1)")
    if not in_items:
        yield from _columns(sql, select)


def groups_by_column(sql: Sql, select: Select, column: str) -> bool:
    """Returns whether a query groups by a column of its input: by its name, alias or number."""
    for first, last in select.groups:
        name = (column_name(sql, (first, last)) or "").lower()
        number = sql[first].value if last - first == 1 else ""
        if name == column:
            return True
        for index, item in enumerate(select.items, 1):
            is_column = (column_name(sql, item.expression) or "").lower() == column
            if is_column and (number == str(index) or name == (item.name or "").lower()):
                return True
    return False


def _struct(window: str) -> str:
    return f"named_struct('start', {window}.start, 'end', {window}.end{_LATER})"


def _columns(sql: Sql, select: Select) -> Iterator[Edit]:
    """Yields the edits of `window`, `window.start` and `window.end` in the selected items."""
    for item in select.items:
        first, last = item.expression
        for index in range(first, last):
            token = sql[index]
            if token.word != "WINDOW" or sql.is_sign(index - 1, "."):
                continue
            if not sql.is_sign(index + 1, "."):
                alias = " AS window" if last - first == 1 and not item.has_alias else ""
                yield Edit(token.start, token.end, _struct(_COLUMN) + alias)
            elif sql[index + 2].value.lower() == "end":
                alias = " AS end" if last - first == 3 and not item.has_alias else ""
                yield Edit(token.start, sql[index + 2].end, f"({_COLUMN}.end{_LATER}){alias}")
            else:
                yield Edit(token.start, token.end, _COLUMN)
