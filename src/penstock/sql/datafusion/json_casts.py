"""Casts of JSON values: `(a -> 'b')::INT`, `CAST(json_get(a, 'b') AS INT)`.

A cast of a JSON value takes a value of the type, and is null for other values.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sql.datafusion import json_values
from penstock.sql.datafusion.json_keys import Step
from penstock.sql.text.sql import Sql

_WHOLE = {
    "TINYINT": "TINYINT", "BYTE": "TINYINT", "SMALLINT": "SMALLINT", "SHORT": "SMALLINT",
    "INT2": "SMALLINT", "INT": "INT", "INTEGER": "INT", "INT4": "INT", "BIGINT": "BIGINT",
    "LONG": "BIGINT", "INT8": "BIGINT",
}  # fmt: skip
"""Types of whole numbers, and the types of Spark."""
_FLOATS = ("FLOAT", "REAL", "FLOAT4", "FLOAT8", "DOUBLE")
_TEXTS = ("TEXT", "STRING", "VARCHAR", "CHARACTER", "CHAR")


def type_of_cast(sql: Sql, first: int, last: int) -> int | None:
    """Returns the first token of the type that the tokens are cast to, or None."""
    while True:
        if sql.is_sign(last, "::") and last + 1 < len(sql):
            return last + 1
        if not sql.is_sign(first - 1, "("):
            return None
        if sql.word(last) == "AS" and sql.word(first - 2) in ("CAST", "TRY_CAST"):
            return last + 1
        if sql.closing.get(first - 1) != last:
            return None
        first, last = first - 1, last + 1


def cast_value(sql: Sql, type_: int, steps: Sequence[Step]) -> str:
    """Returns the template of the value to cast to the type at a token."""
    name = sql.word(type_)
    if sql.is_sign(type_ + 1, "[") or sql.word(type_ + 1) == "UNSIGNED":
        return json_values.text(steps)
    if name in _WHOLE:
        return json_values.number(steps, _WHOLE[name])
    if name in _FLOATS:
        return json_values.number(steps, "DOUBLE")
    if name in ("BOOLEAN", "BOOL"):
        return json_values.boolean(steps)
    return json_values.string(steps) if name in _TEXTS else json_values.text(steps)
