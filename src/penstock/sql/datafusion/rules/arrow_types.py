"""Casts to types of Arrow: `arrow_cast(a, 'Timestamp(Microsecond, None)')`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.text.calls import literal, rewrite
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Call, Sql

_FUNCTIONS = {"arrow_cast": "CAST", "arrow_try_cast": "TRY_CAST"}
_TYPES = {
    "Boolean": "BOOLEAN", "Int8": "TINYINT", "Int16": "SMALLINT", "Int32": "INT",
    "Int64": "BIGINT", "UInt8": "SMALLINT", "UInt16": "INT", "UInt32": "BIGINT",
    "UInt64": "DECIMAL(20, 0)", "Float16": "FLOAT", "Float32": "FLOAT", "Float64": "DOUBLE",
    "Utf8": "STRING", "LargeUtf8": "STRING", "Utf8View": "STRING", "Binary": "BINARY",
    "LargeBinary": "BINARY", "BinaryView": "BINARY", "Date32": "DATE", "Date64": "DATE",
}  # fmt: skip
_DECIMAL = re.compile(r"Decimal(?:32|64|128|256)\((\d+), *(\d+)\)\Z")
_TIMESTAMP = re.compile(r"Timestamp\((?P<unit>\w+)(, *.+)?\)\Z")
_UNITS = {"Second": "SECOND", "s": "SECOND", "Millisecond": "MILLISECOND", "ms": "MILLISECOND"}
_LIST = re.compile(r"(?:Large)?List\((?:nullable )?(.+)\)\Z")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields casts of Spark. Raises DialectError at a type without a counterpart."""
    for call in sql.calls(*_FUNCTIONS):
        if len(call.arguments) == 2:
            cast = _FUNCTIONS[sql[call.name].value.lower()]
            start, end = sql[call.name].start, sql[call.closing].end
            unit = _UNITS.get(_unit(sql, call))
            template = f"{cast}({{0}} AS {_type(sql, call)})"
            template = f"date_trunc('{unit}', {template})" if unit else template
            yield rewrite(sql, start, end, call.arguments[:1], template)


def _unit(sql: Sql, call: Call) -> str:
    """Returns the unit of a timestamp; empty for other types."""
    match = _TIMESTAMP.match(literal(sql, call.arguments[1]) or "")
    return match["unit"] if match else ""


def _type(sql: Sql, call: Call) -> str:
    given = literal(sql, call.arguments[1])
    found = spark_type(given.strip()) if given is not None else None
    if found is None:
        first, last = call.arguments[1]
        problem = f"expected a type of Arrow in quotes, found {sql.slice(first, last)}"
        if given is not None:
            problem = f"the type {given} of Arrow has no counterpart in Spark"
        raise DialectError(
            problem,
            sql[first].start, sql[last - 1].end, "use CAST(a AS TYPE) with a type of Spark",
        )  # fmt: skip
    return found


def spark_type(arrow: str) -> str | None:
    """Returns the type of Spark for a type of Arrow, or None."""
    if arrow in _TYPES:
        return _TYPES[arrow]
    if match := _DECIMAL.match(arrow):
        return f"DECIMAL({match[1]}, {match[2]})"
    if _TIMESTAMP.match(arrow):
        return "TIMESTAMP"
    if match := _LIST.match(arrow):
        item = spark_type(match[1].strip())
        return f"ARRAY<{item}>" if item else None
    return None
