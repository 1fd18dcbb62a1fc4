"""Comparisons with ANY, SOME and ALL: `x = ANY (xs)`, `x > ALL (xs)`, `x = ANY (SELECT ...)`.

An array is searched by a function of Spark, whose answer is null where that of SQL is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql

_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "||")
_FUNCTIONS = {"ANY": "exists", "SOME": "exists", "ALL": "forall"}
_SUBQUERIES = {
    ("=", "exists"): "IN", ("==", "exists"): "IN", ("<>", "forall"): "NOT IN",
    ("!=", "forall"): "NOT IN",
}  # fmt: skip
_ELEMENT = "_element"


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions in place of comparisons with arrays, and IN in place of subqueries."""
    for index, token in enumerate(sql.tokens[:-2]):
        function = _FUNCTIONS.get(sql.word(index + 1))
        is_comparison = token.kind == "sign" and token.value in _COMPARISONS
        closing = sql.closing.get(index + 2) if sql.is_sign(index + 2, "(") else None
        if not is_comparison or function is None or closing is None:
            continue
        if sql.word(index + 3) in ("SELECT", "WITH"):
            yield [_in_subquery(sql, index, function)]
        elif (first := _left_operand(sql, index)) is not None:
            array = sql.slice(index + 3, closing)
            start = sql[first].start
            yield [
                Edit(start, start, f"{function}({array}, {_ELEMENT} -> "),
                Edit(sql[index + 1].start, sql[closing].end, f"{_ELEMENT})"),
            ]


def _in_subquery(sql: Sql, index: int, function: str) -> Edit:
    """Returns IN or NOT IN. Raises DialectError for other comparisons."""
    operator, quantifier = sql[index], sql[index + 1]
    if (operator.value, function) in _SUBQUERIES:
        return Edit(operator.start, quantifier.end, _SUBQUERIES[operator.value, function])
    raise DialectError(
        f"{operator.value} {quantifier.word} of a subquery is not supported",
        operator.start, quantifier.end,
        "compare with the least or the greatest value, as in > (SELECT max(x) FROM t)",
    )  # fmt: skip


def _left_operand(sql: Sql, index: int) -> int | None:
    """Returns the first token of the arithmetic expression that ends before a comparison."""
    first = sql.operand_before(index)
    while first is not None and first > 0 and sql[first - 1].value in _ARITHMETIC:
        before = sql.operand_before(first - 1)
        if before is None:
            return first - 1
        first = before
    return first
