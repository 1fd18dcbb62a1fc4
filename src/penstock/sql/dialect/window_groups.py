"""Checks that a query with a window groups by it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.dialect.relation import Spec
from penstock.sql.dialect.sessions import COLUMN
from penstock.sql.dialect.window_calls import WINDOWS
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Part, Select
from penstock.sql.text.edits import DialectError
from penstock.sql.text.query import column_name
from penstock.sql.text.sql import Call, Sql


def check_calls(sql: Sql, select: Select, calls: Sequence[Call], specs: Sequence[Spec]) -> None:
    """Checks that a query has one window, which it groups by. Raises DialectError."""
    for call, spec in zip(calls, specs, strict=True):
        if spec != specs[0]:
            message = "a query groups by one window"
            raise window_error(sql, call, message, "window in a query of its own first")
    allowed = [select.clauses.get(name, (0, 0)) for name in ("GROUP", "HAVING")]
    allowed += [item.part for item in select.items]
    for call in calls:
        name = sql[call.name].value.lower()
        if not any(first <= call.name < last for first, last in allowed):
            message = f"{name} belongs to SELECT and GROUP BY"
            raise window_error(sql, call, message, f"add GROUP BY {name}(...)")
        if not select.groups:
            raise window_error(sql, call, f"{name} has no GROUP BY", "add GROUP BY window")
        _check_group(sql, select, call)
    if not any(is_group(sql, select, call) for call in calls):
        name = sql[calls[0].name].value.lower()
        alias = next((item.name for item in select.items if is_window(sql, item.expression)), None)
        message = f"the query does not group by {name}"
        raise window_error(sql, calls[0], message, f"add {alias or 'window'} to GROUP BY")


def _check_group(sql: Sql, select: Select, call: Call) -> None:
    """Checks that all groups have the window. Raises DialectError."""
    for first, last in select.groups:
        word = sql.word(first)
        if first < call.name < last and word in ("ROLLUP", "CUBE", "GROUPING"):
            name = sql[call.name].value.lower()
            message = f"{word} has groups without the window, which are never complete"
            raise window_error(sql, call, message, f"write GROUP BY {name}(...), {word}(...)")


def is_group(sql: Sql, select: Select, call: Call, column: str = "window") -> bool:
    """Returns whether a query groups by a call: by itself, its alias or its number.

    `column` is the name of the call without an alias.
    """
    names = (column,) if column == COLUMN else WINDOWS
    for first, last in select.groups:
        if first <= call.name < last:
            return True
        name = (column_name(sql, (first, last)) or "").lower()
        number = sql[first].value if last - first == 1 else ""
        for index, item in enumerate(select.items):
            is_named = bool(name) and (item.name or column).lower() == name
            is_call = is_window(sql, item.expression, *names)
            if is_call and (is_named or number == str(index + 1)):
                return True
    return False


def is_window(sql: Sql, part: Part, *names: str) -> bool:
    """Returns whether a part is a call of a window, by default of `tumble`, `hop` or `session`."""
    return whole_call(sql, part, *(names or WINDOWS)) is not None


def window_error(sql: Sql, call: Call, message: str, hint: str) -> DialectError:
    """Returns the error of a call."""
    start, end = sql[call.name].start, sql[call.closing].end
    return DialectError(message, start, end, hint, "invalid-window")
