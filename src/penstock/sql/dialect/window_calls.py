"""Calls of window functions: `tumble`, `hop` and `session`, and those of Spark."""

from __future__ import annotations

from penstock.core.text import plural
from penstock.sql.dialect.relation import Spec
from penstock.sql.text.edits import DialectError
from penstock.sql.text.intervals import check_positive, interval_seconds, signed_seconds
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Call, Sql

WINDOWS = ("tumble", "hop", "session")
SPARK_WINDOWS = ("window", "session_window")
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"), (1e-3, "millisecond"))
FORMS = {
    "tumble": (1, "tumble(width)", "tumble(INTERVAL '5 minutes')"),
    "hop": (2, "hop(slide, width)", "hop(INTERVAL '1 minute', INTERVAL '5 minutes')"),
    "session": (1, "session(gap)", "session(INTERVAL '30 seconds')"),
}
"""The number of arguments of each window function, its form and an example."""


def read_window(sql: Sql, call: Call) -> Spec:
    """Returns the window of `tumble`, `hop` or `session`. Raises DialectError."""
    name = sql[call.name].value.lower()
    count, form, example = FORMS[name]
    start, end = sql[call.name].start, sql[call.closing].end
    if len(call.arguments) != count:
        raise DialectError(
            f"expected {form}, found {plural(len(call.arguments), 'argument')}", start, end,
            f"write {example}", "invalid-window",
        )  # fmt: skip
    lengths = [interval_seconds(sql, *argument) for argument in call.arguments]
    if name != "hop":
        return name, lengths[0], lengths[0]
    slide, width = lengths
    if slide > width:
        message = (
            f"the slide of a hop, {duration(slide)}, is longer than its width, {duration(width)}"
        )
        hint = "write hop(slide, width): the slide is the first argument"
        raise _error(sql, call, 0, message, hint)
    return ("tumble" if slide == width else "hop"), width, slide


def spark_window(sql: Sql, call: Call) -> Spec | None:
    """Returns the window of `window` or `session_window` of Spark, or None if it is not known."""
    try:
        lengths = [interval_seconds(sql, *argument) for argument in call.arguments[1:3]]
    except DialectError:
        return None
    if not lengths or len(call.arguments) > 3:
        return None
    if sql[call.name].value.lower() == "session_window":
        return "session", lengths[0], lengths[0]
    slide = lengths[1] if len(lengths) > 1 else lengths[0]
    return ("tumble" if slide == lengths[0] else "hop"), lengths[0], slide


def check_spark_window(sql: Sql, call: Call) -> None:
    """Checks the literal lengths of `window` and `session_window` of Spark. Raises DialectError."""
    if not 2 <= len(call.arguments) <= 4:
        return
    lengths = [check_positive(sql, *argument) for argument in call.arguments[1:3]]
    width, slide = lengths[0], lengths[-1]
    if width is None or slide is None:
        return
    if slide > width:
        message = f"the slide of a window, {duration(slide)}, is longer than its width, "
        hint = "write window(time, width, slide): the width is first"
        raise _error(sql, call, 2, message + duration(width), hint)
    start = signed_seconds(sql, *call.arguments[3]) if len(call.arguments) == 4 else None
    if start is not None and abs(start) >= slide:
        message = (
            f"the start of a window, {sql.slice(*call.arguments[3])}, is not within its slide, "
        )
        within = duration(rest) if (rest := start % slide) else "0 seconds"
        raise _error(sql, call, 3, message + duration(slide), f"write {quote(within)}")


def _error(sql: Sql, call: Call, argument: int, message: str, hint: str) -> DialectError:
    first, last = call.arguments[argument]
    return DialectError(message, sql[first].start, sql[last - 1].end, hint, "invalid-window")


def window_sql(spec: Spec, time: str) -> str:
    """Returns the window function of Spark over a column of times or windows."""
    kind, width, slide = spec
    if kind == "session":
        return f"session_window({time}, {quote(duration(width - 1e-6))})"
    further = f", {quote(duration(slide))}" if slide != width else ""
    return f"window({time}, {quote(duration(width))}{further})"


def duration(seconds: float) -> str:
    """Returns a duration in the largest unit without a fraction, as Spark reads it."""
    for length, unit in _UNITS:
        count = round(seconds / length)
        if count and abs(count * length - seconds) < 1e-9:
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{round(seconds * 1e6)} microseconds"
