"""Literals in the names of columns, as DataFusion writes them: `Int64(1)`, `Utf8("a")`."""

from __future__ import annotations

import re
from decimal import Decimal

from penstock.sql.text.tokens import Token

_MAX = {63: "Int64", 64: "UInt64"}
_WHOLE = re.compile(r"\d+\Z")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\Z", re.IGNORECASE)
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_MONTHS = {"year": 12, "y": 12, "yr": 12, "quarter": 3, "month": 1, "mon": 1, "century": 1200}
_DAYS = {"week": 7, "w": 7, "day": 1, "d": 1}
_NANOS = {
    "hour": 3_600_000_000_000, "h": 3_600_000_000_000, "hr": 3_600_000_000_000,
    "minute": 60_000_000_000, "m": 60_000_000_000, "min": 60_000_000_000,
    "second": 1_000_000_000, "s": 1_000_000_000, "sec": 1_000_000_000,
    "millisecond": 1_000_000, "ms": 1_000_000, "microsecond": 1_000, "us": 1_000,
    "nanosecond": 1,
}  # fmt: skip


class UnknownName(Exception):
    """A form of an expression whose name is not known."""


def number_name(text: str, sign: str = "") -> str:
    """Returns a number: `Int64(1)`, `Float64(1.5)`. Raises UnknownName for another form of one."""
    if not _NUMBER.match(text):
        raise UnknownName
    if _WHOLE.match(text):
        value = int(text)
        for bits, name in _MAX.items():
            if value < 1 << bits and not (sign and name == "UInt64"):
                return f"{name}({sign}{value})"
    digits = format(Decimal(repr(float(text))), "f")
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return f"Float64({sign}{whole}{'.' if fraction else ''}{fraction})"


def text_name(value: str) -> str:
    """Returns a text: `Utf8("a")`."""
    return f'Utf8("{value}")'


def literal_name(token: Token) -> str | None:
    """Returns a number, a text or a constant; None for another token. Raises UnknownName."""
    if token.kind == "number" and not token.value.lower().startswith("0x"):
        return number_name(token.value)
    if token.kind == "string":
        return text_name(token.value)
    constants = {"TRUE": "Boolean(true)", "FALSE": "Boolean(false)", "NULL": "NULL"}
    return constants.get(token.word)


def interval_name(text: str) -> str | None:
    """Returns an interval such as `5 minutes`; None for one of another form."""
    months = days = nanoseconds = Decimal(0)
    position = 0
    while match := _TERM.match(text, position):
        number, unit = Decimal(match[1]), match[2].lower()
        if unit not in (*_MONTHS, *_DAYS, *_NANOS):
            unit = unit.removesuffix("s")
        if unit in _MONTHS:
            months += number * _MONTHS[unit]
        elif unit in _DAYS:
            days += number * _DAYS[unit]
        elif unit in _NANOS:
            nanoseconds += number * _NANOS[unit]
        else:
            return None
        position = match.end()
    parts = (months, days, nanoseconds)
    if not text.strip() or position < len(text) or any(part != int(part) for part in parts):
        return None
    return (
        f'IntervalMonthDayNano("IntervalMonthDayNano {{ months: {int(months)}, '
        f'days: {int(days)}, nanoseconds: {int(nanoseconds)} }}")'
    )
