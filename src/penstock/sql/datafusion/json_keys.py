"""Keys and indexes of JSON values in the arguments of functions and after operators."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sql.text.sql import Sql


@dataclass(frozen=True)
class Computed:
    """A key or an index that is an expression: the part `{part}` of a template."""

    part: int


Step = str | int | Computed
"""A key, an index, or an expression of either."""


def is_literal_key(sql: Sql, index: int) -> bool:
    """Returns whether a token is a text in quotes or a whole number."""
    token = sql[index]
    return token.kind == "string" or (token.kind == "number" and token.value.isdecimal())


def key_end(sql: Sql, index: int) -> int | None:
    """Returns the token after the key at `index` that follows an operator, or None.

    A cast after a literal is a cast of the value.
    """
    if index < len(sql) and is_literal_key(sql, index):
        return index + 1
    return sql.operand_after(index)


def read_step(sql: Sql, part: tuple[int, int], number: int) -> Step:
    """Returns the key or index of a part, which has the number `number` in the template."""
    first, last = part
    if last - first != 1 or not is_literal_key(sql, first):
        return Computed(number)
    token = sql[first]
    return token.value if token.kind == "string" else int(token.value)
