"""Intervals as arguments: `INTERVAL '5 minutes'`, `INTERVAL '1' HOUR`, `'5 minutes'`."""

from __future__ import annotations

import re

from penstock.sql.text.edits import DialectError
from penstock.sql.text.sql import Sql

_UNITS = {
    "microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0,
    "day": 86400.0, "week": 604800.0,
    "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip
_PART = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_INTERVAL = re.compile(r"^\s*interval\b", re.IGNORECASE)
_EXAMPLE = "write an interval such as INTERVAL '5 minutes'"


def interval_text(sql: Sql, first: int, last: int) -> str:
    """Returns the text of a literal interval, as `5 minutes`. Raises DialectError."""
    start = first + 1 if sql.word(first) == "INTERVAL" else first
    tokens = sql.tokens[start:last]
    if last - first > 2 and sql.words(last - 1, "INTERVAL") and sql.is_sign(last - 2, "::"):
        tokens = sql.tokens[first : last - 2]
    text = " ".join(token.value for token in tokens).strip()
    is_literal = tokens and tokens[0].kind in ("string", "number")
    if not is_literal or len(tokens) > 2 or (len(tokens) == 2 and not tokens[1].word):
        raise _error(sql, first, last, f"expected an interval, found {sql.slice(first, last)}")
    return text


def interval_seconds(sql: Sql, first: int, last: int) -> float:
    """Returns the length of a literal interval, which is not zero. Raises DialectError."""
    seconds = _seconds(sql, first, last, text := interval_text(sql, first, last))
    if seconds is None or seconds <= 0:
        raise _not_positive(sql, first, last, text)
    return seconds


def signed_seconds(sql: Sql, first: int, last: int) -> float | None:
    """Returns the length of a literal interval of Spark; None for another expression.

    Raises DialectError for months.
    """
    try:
        text = interval_text(sql, first, last)
    except DialectError:
        return None
    return _seconds(sql, first, last, _INTERVAL.sub("", text))


def check_positive(sql: Sql, first: int, last: int) -> float | None:
    """Returns the length of a literal interval of Spark, which is above zero; None if unknown.

    Raises DialectError.
    """
    seconds = signed_seconds(sql, first, last)
    if seconds is not None and seconds <= 0:
        raise _not_positive(sql, first, last, interval_text(sql, first, last))
    return seconds


def _seconds(sql: Sql, first: int, last: int, text: str) -> float | None:
    position, seconds = 0, 0.0
    while match := _PART.match(text, position):
        unit = match[2].lower()
        unit = unit if unit in _UNITS else unit.removesuffix("s")
        if unit in ("month", "mon", "year", "quarter", "y"):
            message = f"an interval of {match[2].lower()} has no fixed length"
            raise _error(sql, first, last, message, "write a number of days, such as '30 days'")
        if unit not in _UNITS:
            return None
        seconds += float(match[1]) * _UNITS[unit]
        position = match.end()
    return seconds if position == len(text) else None


def _not_positive(sql: Sql, first: int, last: int, text: str) -> DialectError:
    return _error(sql, first, last, f"expected an interval above zero, found {text!r}")


def _error(sql: Sql, first: int, last: int, message: str, hint: str = _EXAMPLE) -> DialectError:
    start, end = sql[first].start, sql[last - 1].end
    return DialectError(message, start, end, hint, "invalid-interval")
