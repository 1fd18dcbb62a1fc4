"""Functions of times: `date_bin`, `to_timestamp_millis`, `extract(epoch FROM t)`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.core.text import did_you_mean
from penstock.sql.text.calls import literal, rewrite, rewrite_call
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.intervals import interval_seconds, interval_text
from penstock.sql.text.sql import Call, Sql

_TEMPLATES = {
    ("to_timestamp_seconds", 1): "timestamp_seconds({0})",
    ("to_timestamp_millis", 1): "timestamp_millis({0})",
    ("to_timestamp_micros", 1): "timestamp_micros({0})",
    ("to_timestamp_nanos", 1): "CAST({0} AS TIMESTAMP)",
    ("to_unixtime", 1): "(unix_micros(CAST({0} AS TIMESTAMP)) DIV 1000000)",
    ("today", 0): "current_date()",
}
_OF_TEXT = {
    "to_timestamp_seconds": "date_trunc('second', CAST({0} AS TIMESTAMP))",
    "to_timestamp_millis": "date_trunc('millisecond', CAST({0} AS TIMESTAMP))",
    "to_timestamp_micros": "CAST({0} AS TIMESTAMP)",
    "to_timestamp_nanos": "CAST({0} AS TIMESTAMP)",
}
"""Functions of a text in quotes."""
_FIELDS = {
    "epoch": "(unix_micros({0}) / 1000000.0D)",
    "millisecond": "CAST(extract(SECOND FROM {0}) * 1000 AS INT)",
    "microsecond": "CAST(extract(SECOND FROM {0}) * 1000000 AS INT)",
    "nanosecond": "CAST(extract(SECOND FROM {0}) * 1000000000 AS BIGINT)",
    "isodow": "extract(DAYOFWEEK_ISO FROM {0})",
    "isoyear": "extract(YEAROFWEEK FROM {0})",
}
"""Fields that Spark does not have, or has under another name."""
_UNITS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond",
    "microsecond", "yyyy", "yy", "mon", "mm", "dd",
)  # fmt: skip
"""The units of date_trunc."""
_MONTHS = re.compile(r"\s*(\d+)\s*(month|year)s?\s*\Z", re.IGNORECASE)
_MONTH = "((year({1}) - 1970) * 12 + month({1}) - 1)"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark. Raises DialectError at AT TIME ZONE."""
    for index, token in enumerate(sql.tokens):
        if sql.words(index, "AT", "TIME", "ZONE"):
            raise DialectError(
                "AT TIME ZONE has no counterpart in Spark", token.start, sql[index + 2].end,
                "use to_utc_timestamp(time, zone) or from_utc_timestamp(time, zone)",
            )  # fmt: skip
    for call in sql.calls():
        name, arguments = sql[call.name].value.lower(), call.arguments
        template = _TEMPLATES.get((name, len(arguments)))
        if template:
            is_text = literal(sql, arguments[0]) is not None if arguments else False
            yield rewrite_call(sql, call, _OF_TEXT.get(name, template) if is_text else template)
        elif name == "date_trunc" and len(arguments) == 2:
            _check_unit(sql, arguments[0])
        elif name == "date_bin" and len(arguments) in (2, 3):
            yield rewrite_call(sql, call, _date_bin(sql, call))
        elif name in ("date_part", "datepart") and len(arguments) == 2:
            if template := _field(literal(sql, arguments[0]) or ""):
                yield rewrite_call(sql, call, template.replace("{0}", "{1}"))
        elif name == "extract" and sql.word(call.opening + 2) == "FROM":
            start, end = sql[call.name].start, sql[call.closing].end
            parts, template = _extracted(sql, call)
            if template:
                yield rewrite(sql, start, end, parts, template)
        elif name == "from_unixtime" and len(arguments) == 2:
            if "/" in (literal(sql, arguments[1]) or ""):
                template = "from_utc_timestamp(timestamp_seconds({0}), {1})"
                yield rewrite_call(sql, call, template)
        elif name == "to_date" and len(arguments) == 1 and _is_number(sql, arguments[0]):
            yield rewrite_call(sql, call, "date_from_unix_date({0})")


def _check_unit(sql: Sql, argument: tuple[int, int]) -> None:
    """Raises DialectError at an unknown unit, for which Spark returns null."""
    unit = literal(sql, argument)
    if unit is not None and argument[1] - argument[0] == 1 and unit.lower() not in _UNITS:
        raise DialectError(
            f"date_trunc has no unit '{unit}'", sql[argument[0]].start, sql[argument[0]].end,
            did_you_mean(unit.lower(), _UNITS),
        )  # fmt: skip


def _field(name: str) -> str | None:
    name = name.lower()
    return _FIELDS.get(name) or _FIELDS.get(name.removesuffix("s"))


def _extracted(sql: Sql, call: Call) -> tuple[list[tuple[int, int]], str | None]:
    """Returns the operands of `extract(field FROM a)` and the template of the value.

    The epoch of `a - b`, a difference of times, is the seconds between them.
    """
    field, first, last = sql[call.opening + 1].value, call.opening + 3, call.closing
    if field.lower() == "epoch":
        if sql.word(first) == "INTERVAL":
            return [], f"{interval_seconds(sql, first, last)}D"
        inner = (first, last)
        while sql.is_sign(inner[0], "(") and sql.closing.get(inner[0]) == inner[1] - 1:
            inner = (inner[0] + 1, inner[1] - 1)
        parts = list(sql.split(*inner, "-"))
        if len(parts) == 2 and sql.word(parts[1][0]) != "INTERVAL" and parts[0][0] < parts[0][1]:
            return parts, "((unix_micros({0}) - unix_micros({1})) / 1000000.0D)"
    return [(first, last)], _field(field)


def _is_number(sql: Sql, part: tuple[int, int]) -> bool:
    first, last = part
    return last - first == 1 and sql[first].kind == "number"


def _date_bin(sql: Sql, call: Call) -> str:
    """Returns the template of the start of the interval around a time."""
    first, last = call.arguments[0]
    if match := _MONTHS.match(interval_text(sql, first, last)):
        width = int(match[1]) * (12 if match[2].lower() == "year" else 1)
        if len(call.arguments) == 3 or width == 0:
            raise DialectError(
                "date_bin of months has no origin other than 1970-01-01",
                sql[first].start, sql[last - 1].end,
                "leave out the origin, or write a number of days, such as '30 days'",
                "invalid-interval",
            )  # fmt: skip
        months = f"{_MONTH} - pmod({_MONTH}, {width})"
        return f"CAST(add_months(DATE '1970-01-01', {months}) AS TIMESTAMP)"
    width = round(interval_seconds(sql, first, last) * 1_000_000)
    origin = " - unix_micros({2})" if len(call.arguments) == 3 else ""
    return f"timestamp_micros(unix_micros({{1}}) - pmod(unix_micros({{1}}){origin}, {width}L))"
