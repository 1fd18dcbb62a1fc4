"""Operands of arithmetic operators: calls with their clauses, casts, CASE, names and literals."""

from __future__ import annotations

from penstock.sql.text.sql import Sql

_SECOND_WORDS = ("PRECISION", "UNSIGNED", "VARYING")
"""The last words of types: `DOUBLE PRECISION`, `BIGINT UNSIGNED`."""
_CLAUSES = ("OVER", "FILTER")
_NULLS = ("IGNORE", "RESPECT")


def operand_before(sql: Sql, index: int) -> int | None:
    """Returns the first token of the operand that ends before `index`, or None."""
    if sql.word(index - 1) == "END" and not sql.is_sign(index - 2, "."):
        return _case_before(sql, index - 1)
    if sql.word(index - 1) in _SECOND_WORDS:
        return operand_before(sql, index - 1)
    first = sql.operand_before(index)
    if first is None or "INTERVAL" in (sql.word(first - 1), sql.word(first - 2)):
        return None
    if sql.is_sign(first, "(") and sql.word(first - 1) in _CLAUSES:
        return operand_before(sql, first - 1)
    if sql.is_sign(first, "(") and sql.words(first - 2, "WITHIN", "GROUP"):
        return operand_before(sql, first - 2)
    if sql.word(first) == "NULLS" and sql.word(first - 1) in _NULLS:
        return operand_before(sql, first - 1)
    return operand_before(sql, first - 1) if sql.word(first - 1) == "OVER" else first


def operand_after(sql: Sql, index: int) -> int | None:
    """Returns the token after the operand that begins at `index`, or None."""
    while sql.is_sign(index, "-") or sql.is_sign(index, "+"):
        index += 1
    if sql.word(index) == "INTERVAL":
        return None
    last = _case_after(sql, index) if sql.word(index) == "CASE" else sql.operand_after(index)
    while last is not None and last < len(sql):
        if sql.is_sign(last - 2, "::") and sql.is_sign(last, "("):
            last = sql.closing.get(last, last) + 1
        elif sql.word(last) in _SECOND_WORDS and sql.is_sign(last - 2, "::"):
            last += 1
        elif sql.words(last, "WITHIN", "GROUP"):
            last = sql.closing.get(last + 2, last + 2) + 1
        elif sql.word(last) in _CLAUSES:
            last = sql.closing.get(last + 1, last + 1) + 1
        elif sql.word(last) in _NULLS and sql.word(last + 1) == "NULLS":
            last += 2
        else:
            break
    return last


def _case_before(sql: Sql, end: int) -> int | None:
    """Returns the CASE that belongs to an END."""
    depth = 0
    for index in range(end, -1, -1):
        depth += (sql.word(index) == "END") - (sql.word(index) == "CASE")
        if depth == 0:
            return index
    return None


def _case_after(sql: Sql, case: int) -> int | None:
    """Returns the token after the END that belongs to a CASE."""
    depth = 0
    for index in range(case, len(sql)):
        depth += (sql.word(index) == "CASE") - (sql.word(index) == "END")
        if depth == 0:
            return index + 1
    return None
