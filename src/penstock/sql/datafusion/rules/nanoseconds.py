"""Times with nanoseconds, which Spark does not have: `CAST(a AS TIMESTAMP(9))`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.datafusion.rules.types import casts
from penstock.sql.text.calls import literal
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql

_HINTS = {
    "to_timestamp_nanos": "use to_timestamp_micros(a DIV 1000), and a % 1000 for the rest",
    "timestamp_nanos": "use timestamp_micros(a DIV 1000), and a % 1000 for the rest",
    "unix_nanos": "use unix_micros(a) * 1000",
}
_ARROW_CASTS = ("arrow_cast", "arrow_try_cast")
_MICROSECONDS = 6
_FRACTION = re.compile(r"\.\d{6}\d*[1-9]")
_TYPES = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields nothing. Raises DialectError at a type, a function or a literal of nanoseconds."""
    for call in sql.calls(*_HINTS):
        name = sql[call.name].value.lower()
        text = literal(sql, call.arguments[0]) if call.arguments else None
        if text is None or _FRACTION.search(text):
            raise _error(sql, call.name, call.name, f"the function {name}", _HINTS[name])
    for call in sql.calls(*_ARROW_CASTS):
        if len(call.arguments) == 2:
            first, last = call.arguments[1]
            if re.match(r"Timestamp\(\s*(Nanosecond|ns)\b", literal(sql, (first, last)) or ""):
                hint = "use 'Timestamp(Microsecond, None)'"
                raise _error(sql, first, last - 1, "the type Timestamp(Nanosecond)", hint)
    for cast in casts(sql):
        index = cast.type
        if sql.word(index) in _TYPES and sql.is_sign(index + 1, "("):
            digits = sql[index + 2].value if index + 2 < len(sql) else ""
            if digits.isdecimal() and int(digits) > _MICROSECONDS:
                name = f"the type {sql.word(index)}({digits})"
                raise _error(sql, index, index + 3, name, "use TIMESTAMP(6)")
    for index in range(1, len(sql)):
        text = literal(sql, (index, index + 1)) if sql.word(index - 1) in _TYPES else None
        if text is not None and _FRACTION.search(text):
            name, hint = f"the time '{text}'", "write at most six digits of seconds"
            raise _error(sql, index - 1, index, name, hint)
    yield from ()


def _error(sql: Sql, first: int, last: int, subject: str, hint: str) -> DialectError:
    problem = f"{subject} has nanoseconds, and times have microseconds"
    return DialectError(problem, sql[first].start, sql[last].end, hint, "unsupported-type")
