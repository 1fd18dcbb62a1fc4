"""Regular expressions: `a ~ 'x'`, `a !~* 'x'`, `regexp_match(a, 'x')`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.dialect.calls import literal, rewrite_call
from penstock.sql.dialect.text import DialectError, Edit
from penstock.sql.dialect.tokens import Sql


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields RLIKE and functions of Spark."""
    yield from _operators(sql)
    for call in sql.calls("regexp_match"):
        if len(call.arguments) == 2:
            yield rewrite_call(sql, call, _match(sql, call.arguments[1]))
    for call in sql.calls("regexp_replace"):
        if len(call.arguments) == 4 and (literal(sql, call.arguments[3]) or "").strip("gi") == "":
            flags = literal(sql, call.arguments[3])
            if flags == "g":
                yield rewrite_call(sql, call, "regexp_replace({0}, {1}, {2})")
            elif flags == "gi" or flags == "ig":
                yield rewrite_call(sql, call, "regexp_replace({0}, concat('(?i)', {1}), {2})")


def _operators(sql: Sql) -> Iterator[list[Edit]]:
    for index, token in enumerate(sql.tokens):
        if token.kind != "sign" or token.value not in ("~", "~*"):
            continue
        first = index - 1 if sql.is_sign(index - 1, "!") else index
        if sql.operand_before(first) is None or index + 1 >= len(sql):
            continue
        words = "NOT RLIKE" if first < index else "RLIKE"
        edits_ = [Edit(sql[first].start, token.end, words)]
        if token.value == "~*":
            pattern = sql[index + 1]
            if pattern.kind != "string":
                raise DialectError(
                    "expected a pattern in quotes after ~*", pattern.start, pattern.end,
                    "use a RLIKE concat('(?i)', pattern)",
                )  # fmt: skip
            edits_.append(Edit(pattern.start + 1, pattern.start + 1, "(?i)"))
        yield edits_


def _match(sql: Sql, pattern: tuple[int, int]) -> str:
    """Returns the template of the groups of the first match, or of the whole match."""
    text, (first, last) = literal(sql, pattern), pattern
    try:
        groups = re.compile(text or "").groups
    except re.error:
        groups = 0
    if text is None:
        raise DialectError(
            "expected a pattern in quotes as second argument of regexp_match",
            sql[first].start, sql[last - 1].end, "use regexp_extract(text, pattern, group)",
        )  # fmt: skip
    numbers = range(1, groups + 1) if groups else [0]
    values = ", ".join(f"regexp_extract({{0}}, {{1}}, {number})" for number in numbers)
    return f"CASE WHEN {{0}} RLIKE {{1}} THEN array({values}) END"
