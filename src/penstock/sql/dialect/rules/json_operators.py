"""Operators of JSON texts: `a -> 'key'`, `a ->> 'key'`, `a ? 'key'`.

`->` is the JSON text of the value, with the quotes of a text, and `->>` its text. A cast of `->`
takes the value: `(a -> 'price')::DOUBLE`. The `->` of a lambda function remains.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.dialect.calls import quote
from penstock.sql.dialect.json_path import json_text, path_of
from penstock.sql.dialect.text import DialectError, Edit
from penstock.sql.dialect.tokens import Sql

_LAMBDAS = frozenset({
    "AGGREGATE", "ARRAY_SORT", "EXISTS", "FILTER", "FORALL", "MAP_FILTER", "MAP_ZIP_WITH", "REDUCE",
    "TRANSFORM", "TRANSFORM_KEYS", "TRANSFORM_VALUES", "ZIP_WITH",
})  # fmt: skip
"""Functions of Spark with lambda functions as arguments."""
_SIGNS = ("->", "->>", "?")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions in place of the operators, those of one operand at a time."""
    for index, token in enumerate(sql.tokens):
        if token.kind != "sign" or token.value not in _SIGNS or _is_lambda(sql, index):
            continue
        first = sql.operand_before(index)
        if first is None or any(sql.is_sign(first - 1, sign) for sign in _SIGNS):
            continue
        last, steps = _steps(sql, index)
        if steps is None:
            continue
        operator = sql[last - 2].value
        opening, closing = _functions(sql, operator, steps, first, last)
        yield [
            Edit(sql[first].start, sql[first].start, opening),
            Edit(sql[index - 1].end, sql[last - 1].end, closing),
        ]


def _steps(sql: Sql, index: int) -> tuple[int, list[str | int] | None]:
    """Returns the token after a chain of operators, and its keys and indexes."""
    steps: list[str | int] = []
    while index + 1 < len(sql) and sql[index].kind == "sign" and sql[index].value in _SIGNS:
        key = sql[index + 1]
        if key.kind == "string":
            steps.append(key.value)
        elif key.kind == "number" and key.value.isdecimal():
            steps.append(int(key.value))
        elif sql[index].value == "->" and not steps:
            return index, None
        else:
            raise DialectError(
                f"expected a key in quotes or an index after {sql[index].value}",
                key.start, key.end, "use variant_get(parse_json(a), path, 'string') of Spark",
            )  # fmt: skip
        index += 2
        if sql[index - 2].value != "->":
            break
    return index, steps


def _functions(
    sql: Sql, operator: str, steps: list[str | int], first: int, last: int
) -> tuple[str, str]:
    """Returns the text before and after the operand."""
    path = quote(path_of(steps))
    if operator == "?":
        return "(try_variant_get(try_parse_json(", f"), {path}, 'variant') IS NOT NULL)"
    if operator == "->>" or _is_cast(sql, first, last):
        return "get_json_object(", f", {path})"
    return json_text(path)


def _is_cast(sql: Sql, first: int, last: int) -> bool:
    """Returns whether the value is cast: `(a -> 'b')::INT`, `CAST(a -> 'b' AS INT)`."""
    if sql.word(last) == "AS" and sql.is_sign(first - 1, "("):
        return sql.word(first - 2) in ("CAST", "TRY_CAST")
    while sql.is_sign(first - 1, "(") and sql.closing.get(first - 1) == last:
        first, last = first - 1, last + 1
    return sql.is_sign(last, "::")


def _is_lambda(sql: Sql, index: int) -> bool:
    """Returns whether `->` follows the parameters of a lambda function."""
    if sql[index].value != "->":
        return False
    first = sql.operand_before(index)
    opening = sql.enclosing(index)
    if first is None or opening is None or sql.word(opening - 1) not in _LAMBDAS:
        return False
    return sql.is_sign(first - 1, ",") and (first == index - 1 or sql[first].is_sign("("))
