"""Operators of JSON texts: `a -> 'key'`, `a ->> 'key'`, `a ? 'key'`.

`->` is the JSON text of the value, with the quotes of a text, and `->>` its text. A cast of `->`
takes a value of the type, `(a -> 'price')::DOUBLE`, and is null for other values. The `->` of a
lambda function remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.sql.datafusion import json_values
from penstock.sql.datafusion.json_casts import cast_value, type_of_cast
from penstock.sql.datafusion.json_keys import Step, key_end, read_step
from penstock.sql.text.calls import rewrite
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql

_LAMBDAS = frozenset({
    "AGGREGATE", "ARRAY_SORT", "EXISTS", "FILTER", "FORALL", "MAP_FILTER", "MAP_ZIP_WITH", "REDUCE",
    "TRANSFORM", "TRANSFORM_KEYS", "TRANSFORM_VALUES", "ZIP_WITH",
})  # fmt: skip
"""Functions of Spark with lambda functions as arguments."""
_SIGNS = ("->", "->>", "?")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions in place of the operators, those of one operand at a time."""
    for index in range(len(sql)):
        if not _is_operator(sql, index):
            continue
        first = sql.operand_before(index)
        if first is None or _is_operator(sql, first - 1):
            continue
        keys = _keys(sql, index)
        operator, last = sql[keys[-1][0] - 1].value, keys[-1][1]
        steps = [read_step(sql, part, number) for number, part in enumerate(keys, 1)]
        template = _template(operator, steps, sql, type_of_cast(sql, first, last))
        start, end = sql[first].start, sql[last - 1].end
        yield rewrite(sql, start, end, [(first, index), *keys], template)


def _keys(sql: Sql, index: int) -> list[tuple[int, int]]:
    """Returns the keys and indexes of a chain of operators."""
    keys: list[tuple[int, int]] = []
    while _is_operator(sql, index):
        last = key_end(sql, index + 1)
        if last is None:
            at = sql[min(index + 1, len(sql) - 1)]
            raise DialectError(
                f"expected a key or an index after {sql[index].value}", at.start, at.end,
                "put a key that is computed in parentheses: a ->> (CASE WHEN b THEN 'c' END)",
            )  # fmt: skip
        keys.append((index + 1, last))
        if sql[index].value != "->":
            break
        index = last
    return keys


def _template(operator: str, steps: Sequence[Step], sql: Sql, type_: int | None) -> str:
    """Returns the template of a chain that ends with an operator."""
    if operator == "?":
        return json_values.exists(steps)
    if operator == "->>":
        return json_values.text(steps)
    return json_values.json(steps) if type_ is None else cast_value(sql, type_, steps)


def _is_operator(sql: Sql, index: int) -> bool:
    """Returns whether a token is an operator of JSON texts."""
    is_sign = 0 <= index < len(sql) and sql[index].kind == "sign" and sql[index].value in _SIGNS
    return is_sign and not _is_lambda(sql, index)


def _is_lambda(sql: Sql, index: int) -> bool:
    """Returns whether `->` follows the parameters of a lambda function."""
    if sql[index].value != "->":
        return False
    first = sql.operand_before(index)
    opening = sql.enclosing(index)
    if first is None or opening is None or sql.word(opening - 1) not in _LAMBDAS:
        return False
    return sql.is_sign(first - 1, ",") and (first == index - 1 or sql[first].is_sign("("))
