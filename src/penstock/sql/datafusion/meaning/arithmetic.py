"""Numbers with a point and divisions: `1.5` is a double, and `7 / 2` is 3 for whole numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.datafusion.typed_functions import DIVIDE
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_FACTORS = ("*", "/", "%")
_WHOLE = re.compile(r"[+-]?\d+\Z")
_WITH_POINT = re.compile(r"\d+\.\d*\Z")
_NOT_ZERO = re.compile(r"[+-]?\s*\d*\.?\d*[1-9]\d*\.?\d*D\Z")
_OF_INT = frozenset({
    "ADD_MONTHS", "ARRAY_REPEAT", "ARRAY_RESIZE", "ARRAY_SLICE", "DATE_ADD", "DATE_SUB",
    "ELEMENT_AT", "LEFT", "LIST_REPEAT", "LPAD", "MAKE_DATE", "MAKE_INTERVAL", "MAKE_TIMESTAMP",
    "OVERLAY", "REPEAT", "RIGHT", "RPAD", "SHIFTLEFT", "SHIFTRIGHT", "SLICE", "SPACE",
    "SPLIT_PART", "SUBSTR", "SUBSTRING",
})  # fmt: skip
"""Functions with a length, a position or a number of days, which is an INT in Spark."""
_SECOND_WORDS = ("PRECISION", "UNSIGNED", "VARYING")
"""The last words of types: `DOUBLE PRECISION`, `BIGINT UNSIGNED`."""
_CLAUSES = ("OVER", "FILTER")
_NULLS = ("IGNORE", "RESPECT")


def doubles(sql: Sql) -> Iterator[Edit]:
    """Yields the sign of a double after numbers with a point."""
    for index, token in enumerate(sql.tokens):
        if token.kind == "number" and (_WITH_POINT.match(token.value) or _is_half(sql, index)):
            yield Edit(token.end, token.end, "D")


def _is_half(sql: Sql, index: int) -> bool:
    """Returns whether digits follow a point without digits before it: `.5`."""
    if not sql.is_sign(index - 1, ".") or not sql[index].value.isdecimal():
        return False
    return sql[index - 1].end == sql[index].start and sql.operand_before(index - 1) is None


def products(sql: Sql) -> Iterator[Edit]:
    """Yields the sign of a BIGINT after whole numbers in a product, which are BIGINT in DataFusion.

    Some functions of Spark accept only an INT.
    """
    for index, token in enumerate(sql.tokens):
        is_factor = sql.is_sign(index - 1, "*") or sql.is_sign(index + 1, "*")
        is_whole = token.kind == "number" and token.value.isdecimal()
        if is_whole and is_factor and not _is_argument(sql, index, _OF_INT):
            yield Edit(token.end, token.end, "L")


def _is_argument(sql: Sql, index: int, functions: frozenset[str]) -> bool:
    """Returns whether a token is within a call of a function."""
    opening = sql.enclosing(index)
    while opening is not None:
        if sql.word(opening - 1) in functions:
            return True
        opening = sql.enclosing(opening)
    return False


def divisions(sql: Sql) -> Iterator[Edit]:
    """Yields a function in place of the first `/` whose meaning depends on types."""
    for index in range(1, len(sql)):
        if not sql.is_sign(index, "/"):
            continue
        first, last = _first_factor(sql, index), _operand_after(sql, index + 1)
        if first is None or last is None or _NOT_ZERO.match(sql.slice(index + 1, last)):
            continue
        if _WHOLE.match(sql.slice(first, index)) and _WHOLE.match(sql.slice(index + 1, last)):
            yield Edit(sql[index - 1].end, sql[index + 1].start, " DIV ")
            return
        yield Edit(sql[first].start, sql[first].start, f"{DIVIDE}(")
        yield Edit(sql[index - 1].end, sql[index + 1].start, ", ")
        yield Edit(sql[last - 1].end, sql[last - 1].end, ")")
        return


def _first_factor(sql: Sql, index: int) -> int | None:
    """Returns the first token of the product or quotient that ends before `index`."""
    first = _operand_before(sql, index)
    while first is not None and any(sql.is_sign(first - 1, sign) for sign in _FACTORS):
        first = _operand_before(sql, first - 1)
    return first


def _operand_before(sql: Sql, index: int) -> int | None:
    """Returns the first token of the operand that ends before `index`, or None."""
    if sql.word(index - 1) == "END" and not sql.is_sign(index - 2, "."):
        return _case_before(sql, index - 1)
    if sql.word(index - 1) in _SECOND_WORDS:
        return _operand_before(sql, index - 1)
    first = sql.operand_before(index)
    if first is None or "INTERVAL" in (sql.word(first - 1), sql.word(first - 2)):
        return None
    if sql.is_sign(first, "(") and sql.word(first - 1) in _CLAUSES:
        return _operand_before(sql, first - 1)
    if sql.is_sign(first, "(") and sql.words(first - 2, "WITHIN", "GROUP"):
        return _operand_before(sql, first - 2)
    if sql.word(first) == "NULLS" and sql.word(first - 1) in _NULLS:
        return _operand_before(sql, first - 1)
    return _operand_before(sql, first - 1) if sql.word(first - 1) == "OVER" else first


def _operand_after(sql: Sql, index: int) -> int | None:
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
