"""Functions of times: `date_bin`, `to_timestamp_millis`, `extract(epoch FROM t)`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.dialect.calls import literal, rewrite, rewrite_call
from penstock.sql.dialect.intervals import interval_seconds
from penstock.sql.dialect.text import Edit
from penstock.sql.dialect.tokens import Sql

_TEMPLATES = {
    ("to_timestamp_seconds", 1): "timestamp_seconds({0})",
    ("to_timestamp_millis", 1): "timestamp_millis({0})",
    ("to_timestamp_micros", 1): "timestamp_micros({0})",
    ("to_timestamp_nanos", 1): "timestamp_micros({0} DIV 1000)",
    ("to_unixtime", 1): "unix_seconds(CAST({0} AS TIMESTAMP))",
    ("today", 0): "current_date()",
}
_EPOCH = "(unix_micros({0}) / 1000000.0D)"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark."""
    for call in sql.calls():
        name, arguments = sql[call.name].value.lower(), call.arguments
        template = _TEMPLATES.get((name, len(arguments)))
        if template:
            yield rewrite_call(sql, call, template)
        elif name == "date_bin" and len(arguments) in (2, 3):
            width = round(interval_seconds(sql, *arguments[0]) * 1_000_000)
            origin = " - unix_micros({2})" if len(arguments) == 3 else ""
            template = (
                f"timestamp_micros(unix_micros({{1}}) - pmod(unix_micros({{1}}){origin}, {width}L))"
            )
            yield rewrite_call(sql, call, template)
        elif name in ("date_part", "datepart") and len(arguments) == 2:
            if (literal(sql, arguments[0]) or "").lower() == "epoch":
                yield rewrite_call(sql, call, _EPOCH.replace("{0}", "{1}"))
        elif name == "extract" and sql.words(call.opening + 1, "EPOCH", "FROM"):
            start, end = sql[call.name].start, sql[call.closing].end
            yield rewrite(sql, start, end, [(call.opening + 3, call.closing)], _EPOCH)
