"""Names of types in casts: `x::TEXT`, `CAST(x AS BYTEA)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.sql.datafusion.types import UNSIGNED
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_TYPES = {
    "TEXT": "STRING", "VARCHAR": "STRING", "CHARACTER": "STRING", "BYTEA": "BINARY",
    "JSON": "STRING", "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE", "BOOL": "BOOLEAN", "TIMESTAMPTZ": "TIMESTAMP",
}  # fmt: skip
"""Types of PostgreSQL, and the types of Spark."""
_UNSIGNED = {**UNSIGNED, "INTEGER": UNSIGNED["INT"]}
_CASTS = ("cast", "try_cast")
_UNITS = {"0": "SECOND", "3": "MILLISECOND"}
"""The units of timestamps by their number of digits."""


class Cast(NamedTuple):
    """A cast: `text[start:end]`, and the first token of its type."""

    type: int
    start: int
    end: int


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields the types of Spark."""
    for cast in casts(sql):
        index = cast.type
        token = sql[index]
        if sql.word(index + 1) == "UNSIGNED" and token.word in _UNSIGNED:
            yield [Edit(token.start, sql[index + 1].end, _UNSIGNED[token.word])]
        elif token.word == "DOUBLE" and sql.word(index + 1) == "PRECISION":
            yield [Edit(token.start, sql[index + 1].end, "DOUBLE")]
        elif token.word == "CHARACTER" and sql.word(index + 1) == "VARYING":
            yield [Edit(token.start, _end(sql, index + 1), "STRING")]
        elif token.word == "TIMESTAMP" and sql.is_sign(index + 1, "("):
            yield _timestamp(sql, cast)
        elif token.word in _TYPES and not sql.is_sign(index + 1, "("):
            yield [Edit(token.start, token.end, _TYPES[token.word])]
        elif token.word == "VARCHAR":
            yield [Edit(token.start, _end(sql, index), "STRING")]


def casts(sql: Sql) -> Iterator[Cast]:
    """Yields the casts, those of `::` first."""
    for index, token in enumerate(sql.tokens[:-1]):
        first = sql.operand_before(index) if token.is_sign("::") else None
        if first is not None:
            yield Cast(index + 1, sql[first].start, _end(sql, index + 1))
    for call in sql.calls(*_CASTS):
        for index in range(call.opening + 1, call.closing - 1):
            if sql.word(index) == "AS" and sql.enclosing(index) == call.opening:
                yield Cast(index + 1, sql[call.name].start, sql[call.closing].end)


def _timestamp(sql: Sql, cast: Cast) -> list[Edit]:
    """Returns the edits of a cast to `TIMESTAMP(digits)`, which leaves out further digits."""
    start, end = sql[cast.type].start, _end(sql, cast.type)
    unit = _UNITS.get(sql[cast.type + 2].value)
    if unit is None:
        return [Edit(start, end, "TIMESTAMP")]
    return [
        Edit(cast.start, cast.start, f"date_trunc('{unit}', "),
        Edit(start, cast.end, f"TIMESTAMP{sql.text[end : cast.end]})"),
    ]


def _end(sql: Sql, index: int) -> int:
    """Returns the end of a type, after its length in parentheses."""
    return sql[sql.closing.get(index + 1, index)].end
