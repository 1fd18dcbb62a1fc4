"""Windows of the calendar: `calendar_window(time, unit, zone)` as a struct of its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.core.text import did_you_mean
from penstock.sql.dialect.relation import CALENDAR, Spec
from penstock.sql.text.calls import literal, rewrite_call, whole_call
from penstock.sql.text.clauses import Part
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Call, Sql

_NAME = "calendar_window"
_UNITS = {
    "day": "1 DAY",
    "week": "7 DAY",
    "month": "1 MONTH",
    "quarter": "3 MONTH",
    "year": "1 YEAR",
}
_OFFSET = re.compile(r"[+-]\d\d:\d\d\Z")
_EXAMPLE = "write calendar_window(time, 'month', 'Europe/Berlin')"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields the structs of windows. Raises DialectError at an unknown unit or time zone."""
    for call in sql.calls(_NAME):
        if len(call.arguments) not in (2, 3):
            start, end = sql[call.name].start, sql[call.closing].end
            message = "expected calendar_window(time, unit) or calendar_window(time, unit, zone)"
            raise DialectError(message, start, end, _EXAMPLE, "invalid-window")
        unit = _text(sql, call, 1, "a unit in quotes").lower()
        if unit not in _UNITS:
            hint = did_you_mean(unit, _UNITS) or f"write one of {', '.join(_UNITS)}"
            raise _error(sql, call, 1, f"calendar_window has no unit '{unit}'", hint)
        yield rewrite_call(sql, call, _template(unit, _zone(sql, call)))


def calendar_window(sql: Sql, part: Part) -> Spec | None:
    """Returns the window of the calendar whose struct a part is; None for another part.

    The length is 0: windows of a unit have different ones.
    """
    call = whole_call(sql, part, "named_struct")
    if call is None or len(call.arguments) != 4 or literal(sql, call.arguments[0]) != "start":
        return None
    first, last = call.arguments[1]
    zone = sql[last - 2].value if sql.word(first) == "TO_UTC_TIMESTAMP" else ""
    for trunc in sql.calls("date_trunc", first=first, last=last):
        unit = literal(sql, trunc.arguments[0]) if trunc.arguments else None
        return None if unit is None else (f"{CALENDAR}{unit} {zone}", 0, 0)
    return None


def _template(unit: str, zone: str | None) -> str:
    """Returns the struct of the window of the time `{0}`."""
    start, length = f"date_trunc('{unit}', {{0}})", _UNITS[unit].replace(" ", "' ")
    if zone is None:
        return f"named_struct('start', {start}, 'end', {start} + INTERVAL '{length})"
    start = f"date_trunc('{unit}', from_utc_timestamp({{0}}, {quote(zone)}))"
    bounds = (start, f"{start} + INTERVAL '{length}")
    first, last = (f"to_utc_timestamp({bound}, {quote(zone)})" for bound in bounds)
    return f"named_struct('start', {first}, 'end', {last})"


def _zone(sql: Sql, call: Call) -> str | None:
    """Returns the time zone of a window; None for UTC."""
    if len(call.arguments) < 3:
        return None
    zone = _text(sql, call, 2, "a time zone in quotes")
    try:
        if not _OFFSET.match(zone):
            ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _error(sql, call, 2, f"there is no time zone '{zone}'", _EXAMPLE) from None
    return None if zone in ("UTC", "Etc/UTC") else zone


def _text(sql: Sql, call: Call, argument: int, expected: str) -> str:
    text = literal(sql, call.arguments[argument])
    if text is None:
        raise _error(sql, call, argument, f"calendar_window expects {expected}", _EXAMPLE)
    return text


def _error(sql: Sql, call: Call, argument: int, message: str, hint: str) -> DialectError:
    first, last = call.arguments[argument]
    return DialectError(message, sql[first].start, sql[last - 1].end, hint, "invalid-window")
