"""Formats of times with percent signs: `to_char(t, '%Y-%m-%d')`, `to_timestamp(a, '%d/%m/%Y')`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.text.calls import literal, rewrite
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Call, Sql

_LETTERS = {
    "Y": "yyyy", "y": "yy", "m": "MM", "-m": "M", "b": "MMM", "h": "MMM", "B": "MMMM", "d": "dd",
    "-d": "d", "a": "EEE", "A": "EEEE", "j": "DDD", "H": "HH", "-H": "H", "I": "hh", "-I": "h",
    "M": "mm", "-M": "m", "S": "ss", "-S": "s", "p": "a", "f": "SSSSSSSSS", "3f": "SSS",
    "6f": "SSSSSS", "9f": "SSSSSSSSS", ".3f": ".SSS", ".6f": ".SSSSSS", ".9f": ".SSSSSSSSS",
    "F": "yyyy-MM-dd", "T": "HH:mm:ss", "R": "HH:mm", "D": "MM/dd/yy", "z": "xx", ":z": "xxx",
}  # fmt: skip
"""Parts of a format, and those of Spark."""
_PART = re.compile(r"%([-.:]?\d?[A-Za-z%])|([A-Za-z]+)|(')|([\[\]{}#])|(.)", re.DOTALL)
_CODE = re.compile(r"%[-.:]?\d?[A-Za-z]")
_OF_POSTGRESQL = re.compile("YYYY|HH24|HH12")
_WRITERS = ("to_char", "date_format")
_READERS = {
    "to_timestamp": ("to_timestamp", "try_to_timestamp", "{}"),
    "to_timestamp_seconds": ("to_timestamp", "try_to_timestamp", "date_trunc('second', {})"),
    "to_timestamp_millis": ("to_timestamp", "try_to_timestamp", "date_trunc('millisecond', {})"),
    "to_timestamp_micros": ("to_timestamp", "try_to_timestamp", "{}"),
    "to_timestamp_nanos": ("to_timestamp", "try_to_timestamp", "{}"),
    "to_unixtime": ("to_timestamp", "try_to_timestamp", "unix_seconds({})"),
    "to_date": ("to_date", "try_to_date", "{}"),
    "to_time": ("to_time", "try_to_time", "{}"),
}
"""The function of Spark for the last format, for the others, and the result."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark. Raises DialectError at a format without a counterpart."""
    for call in sql.calls(*_WRITERS, *_READERS):
        name, formats = sql[call.name].value.lower(), call.arguments[1:]
        if name in _WRITERS and formats:
            _check_dead_letters(sql, formats[0])
        if not formats or not any(_CODE.search(literal(sql, each) or "") for each in formats):
            continue
        patterns = [quote(_pattern(sql, each)) for each in formats]
        if name in _WRITERS:
            template = f"date_format({{0}}, {patterns[0]})"
        else:
            last, others, result = _READERS[name]
            attempts = [f"{others}({{0}}, {pattern})" for pattern in patterns[:-1]]
            attempts.append(f"{last}({{0}}, {patterns[-1]})")
            chosen = f"coalesce({', '.join(attempts)})" if len(attempts) > 1 else attempts[0]
            template = result.format(chosen)
        yield _rewrite(sql, call, template)


def _check_dead_letters(sql: Sql, argument: tuple[int, int]) -> None:
    """Raises DialectError at a format of PostgreSQL, as `YYYY-MM-DD HH24:MI`."""
    if _OF_POSTGRESQL.search(literal(sql, argument) or ""):
        raise DialectError(
            "the format has letters of PostgreSQL", sql[argument[0]].start,
            sql[argument[1] - 1].end, "use '%Y-%m-%d %H:%M:%S' or 'yyyy-MM-dd HH:mm:ss'",
        )  # fmt: skip


def _rewrite(sql: Sql, call: Call, template: str) -> list[Edit]:
    start, end = sql[call.name].start, sql[call.closing].end
    before, *between = template.split("{0}")
    if len(between) == 1 and "{" not in before + between[0]:
        return rewrite(sql, start, end, call.arguments[:1], template)
    return [Edit(start, end, template.replace("{0}", sql.slice(*call.arguments[0])))]


def _pattern(sql: Sql, argument: tuple[int, int]) -> str:
    """Returns a format as a pattern of Spark."""
    parts = []
    for match in _PART.finditer(literal(sql, argument) or ""):
        code, dead_letters, apostrophe, reserved, other = match.groups()
        if code is not None:
            if code not in _LETTERS:
                raise DialectError(
                    f"the part %{code} of a format has no counterpart in Spark",
                    sql[argument[0]].start, sql[argument[1] - 1].end,
                    "use %Y %m %d %H %M %S %3f %b %a %p and the like, or date_format of Spark",
                )  # fmt: skip
            parts.append(_LETTERS[code])
        elif apostrophe:
            parts.append("''")
        else:
            parts.append(f"'{dead_letters or reserved}'" if dead_letters or reserved else other)
    return "".join(parts)
