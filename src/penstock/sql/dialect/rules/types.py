"""Names of types in casts: `x::TEXT`, `CAST(x AS BYTEA)`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.dialect.text import Edit
from penstock.sql.dialect.tokens import Sql

_TYPES = {
    "TEXT": "STRING", "VARCHAR": "STRING", "CHARACTER": "STRING", "BYTEA": "BINARY",
    "JSON": "STRING", "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE", "BOOL": "BOOLEAN", "TIMESTAMPTZ": "TIMESTAMP",
}  # fmt: skip
"""Types of PostgreSQL, and the types of Spark."""
_UNSIGNED = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "INTEGER": "BIGINT",
             "BIGINT": "DECIMAL(20, 0)"}  # fmt: skip
_CASTS = ("cast", "try_cast")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields the types of Spark."""
    for index in _casts(sql):
        token = sql[index] if index < len(sql) else None
        if token is None:
            continue
        if sql.word(index + 1) == "UNSIGNED" and token.word in _UNSIGNED:
            yield [Edit(token.start, sql[index + 1].end, _UNSIGNED[token.word])]
        elif token.word == "DOUBLE" and sql.word(index + 1) == "PRECISION":
            yield [Edit(token.start, sql[index + 1].end, "DOUBLE")]
        elif token.word == "CHARACTER" and sql.word(index + 1) == "VARYING":
            yield [Edit(token.start, _end(sql, index + 1), "STRING")]
        elif token.word == "TIMESTAMP" and sql.is_sign(index + 1, "("):
            yield [Edit(token.start, _end(sql, index), "TIMESTAMP")]
        elif token.word in _TYPES and not sql.is_sign(index + 1, "("):
            yield [Edit(token.start, token.end, _TYPES[token.word])]
        elif token.word == "VARCHAR":
            yield [Edit(token.start, _end(sql, index), "STRING")]


def _casts(sql: Sql) -> Iterator[int]:
    """Yields the first token of the type of each cast."""
    for index, token in enumerate(sql.tokens):
        if token.is_sign("::"):
            yield index + 1
    for call in sql.calls(*_CASTS):
        for index in range(call.opening + 1, call.closing):
            if sql.word(index) == "AS" and sql.enclosing(index) == call.opening:
                yield index + 1


def _end(sql: Sql, index: int) -> int:
    """Returns the end of a type, after its length in parentheses."""
    return sql[sql.closing.get(index + 1, index)].end
