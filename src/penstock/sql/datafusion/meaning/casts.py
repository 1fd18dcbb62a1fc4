"""Casts whose result depends on the type of their operand: `CAST(a AS TEXT)`, `a::BIGINT`.

The text of a timestamp and of a double, and the integer of a timestamp, are those of DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.datafusion.rules.types import Cast, casts
from penstock.sql.datafusion.typed_functions import BIGINT, TEXT
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_FUNCTIONS = {
    "TEXT": TEXT, "VARCHAR": TEXT, "STRING": TEXT, "CHARACTER": TEXT, "BIGINT": BIGINT,
    "INT8": BIGINT,
}  # fmt: skip
_LITERALS = ("NULL", "TRUE", "FALSE")
_JSON = ("->", "->>", "?")


def typed_casts(sql: Sql) -> Iterator[Edit]:
    """Yields a function in place of the first cast whose result depends on types."""
    for cast in casts(sql):
        function = _FUNCTIONS.get(sql[cast.type].word or "")
        operand = _operand(sql, cast)
        if function is None or operand is None or sql.word(cast.type + 1) == "UNSIGNED":
            continue
        first, last = operand
        yield Edit(cast.start, sql[first].start, f"{function}(")
        yield Edit(sql[last - 1].end, cast.end, ")")
        return


def _operand(sql: Sql, cast: Cast) -> tuple[int, int] | None:
    """Returns the tokens of the operand; None for TRY_CAST, a literal, and values of JSON."""
    last = cast.type - 1
    if sql.is_sign(last, "::"):
        first = sql.operand_before(last)
    else:
        opening = sql.enclosing(cast.type)
        first = None if opening is None or sql.word(opening - 1) != "CAST" else opening + 1
    if first is None or (last - first == 1 and not _is_column(sql, first)):
        return None
    tokens = range(first, last)
    is_json = any(
        any(sql.is_sign(each, sign) for sign in _JSON) or sql[each].value.lower().startswith("json")
        for each in tokens
    )
    return None if is_json else (first, last)


def _is_column(sql: Sql, index: int) -> bool:
    return sql[index].is_name and sql.word(index) not in _LITERALS
