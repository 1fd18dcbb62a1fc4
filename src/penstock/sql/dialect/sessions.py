"""Sessions: `session(gap)` and `session_window(time, gap)` by one rule.

A row belongs to a session if it is less than the gap later than the last row. Spark accepts rows
that are later by exactly the gap, so its gap is a microsecond less, which the end makes up for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.sql.text.clauses import Select
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import column_name
from penstock.sql.text.sql import Call, Sql

COLUMN = "session_window"
"""The column of the sessions of Spark."""
_LATER = " + INTERVAL '0.000001' SECOND"


def session_edits(
    sql: Sql,
    select: Select,
    calls: Sequence[Call],
    window: str,
    time: str | None,
    column: str = "window",
) -> Iterator[Edit]:
    """Yields the edits of the sessions of a query. `window` is the session in Spark SQL.

    `column` is the name of the sessions in the query. Spark requires a key besides the session:
    without one, `time` gives a constant key.
    """
    in_items = {}
    for index, item in enumerate(select.items):
        for call in calls:
            start, last = sql[call.name].start, call.closing
            if item.expression == (call.name, last + 1):
                in_items[index] = (item.name or column).lower()
                alias = "" if item.has_alias else f" AS {column}"
                yield Edit(start, sql[last].end, _struct(window) + alias)
            elif item.part[0] <= call.name < item.part[1]:
                yield _part_edit(sql, call, window)
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
        yield Edit(end, end, key_edit_text(time))
    if not in_items:
        yield from _columns(sql, select, column)


def key_edit_text(time: str) -> str:
    """Returns a constant key of groups, which Spark does not evaluate in advance."""
    return f", pmod(hash({time}), 1)"


def _part_edit(sql: Sql, call: Call, window: str) -> Edit:
    """Returns the edit of a call within an expression, as in `session_window(at, '1 h').end`."""
    start, end = sql[call.name].start, sql[call.closing].end
    if not sql.is_sign(call.closing + 1, "."):
        return Edit(start, end, _struct(window))
    field = sql[call.closing + 2]
    later = _LATER if field.value.lower() == "end" else ""
    return Edit(start, field.end, f"({window}.{field.value}{later})")


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


def _columns(sql: Sql, select: Select, column: str) -> Iterator[Edit]:
    """Yields the edits of the column of sessions and of its fields in SELECT and HAVING."""
    items = [(item.expression, item.has_alias) for item in select.items]
    having = select.clauses.get("HAVING")
    for (first, last), has_alias in [*items, *([(having, True)] if having else [])]:
        for index in range(first, last):
            token = sql[index]
            is_column = token.word == column.upper() and not sql.is_sign(index + 1, "(")
            if not is_column or sql.is_sign(index - 1, "."):
                continue
            if not sql.is_sign(index + 1, "."):
                alias = f" AS {column}" if last - first == 1 and not has_alias else ""
                yield Edit(token.start, token.end, _struct(COLUMN) + alias)
            elif sql[index + 2].value.lower() == "end":
                alias = " AS end" if last - first == 3 and not has_alias else ""
                yield Edit(token.start, sql[index + 2].end, f"({COLUMN}.end{_LATER}){alias}")
            else:
                yield Edit(token.start, token.end, COLUMN)
