"""Arrays, maps and structs as literals: `[1, 2]`, `ARRAY[1, 2]`, `MAP {'a': 1}`, `{a: 1}`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.edits import Edit
from penstock.sql.text.quoting import quote
from penstock.sql.text.sql import Sql


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark, and comparisons in place of `@>` and `<@`."""
    for opening, closing in sql.closing.items():
        if sql.is_sign(opening, "["):
            if (
                sql.word(opening - 1) == "ARRAY"
                and len(list(sql.split(opening + 1, closing, ","))) > 1
            ):
                yield _brackets(sql, opening, closing, opening - 1, "array(")
            elif sql.operand_before(opening) is None:
                yield _brackets(sql, opening, closing, opening, "array(")
        elif sql.is_sign(opening, "{"):
            yield from _braces(sql, opening, closing)
    yield from _containment(sql)


def _brackets(sql: Sql, opening: int, closing: int, first: int, function: str) -> list[Edit]:
    return [
        Edit(sql[first].start, sql[opening].end, function),
        Edit(sql[closing].start, sql[closing].end, ")"),
    ]


def _braces(sql: Sql, opening: int, closing: int) -> Iterator[list[Edit]]:
    is_map = sql.word(opening - 1) == "MAP"
    group = _brackets(
        sql, opening, closing, opening - is_map, "map(" if is_map else "named_struct("
    )
    for first, last in sql.split(opening + 1, closing, ","):
        pair = list(sql.split(first, last, ":"))
        if len(pair) != 2:
            return
        (key, after), (value, _) = pair
        if not is_map and after - key == 1:
            group.append(Edit(sql[key].start, sql[key].end, quote(sql[key].value)))
        group.append(Edit(sql[after - 1].end, sql[value].start, ", "))
    yield group


def _containment(sql: Sql) -> Iterator[list[Edit]]:
    for index in range(1, len(sql) - 2):
        if sql.is_sign(index, "@") and sql.is_sign(index + 1, ">"):
            template = "(size(array_except({1}, {0})) = 0)"
        elif sql.is_sign(index, "<") and sql.is_sign(index + 1, "@"):
            template = "(size(array_except({0}, {1})) = 0)"
        else:
            continue
        first, last = sql.operand_before(index), sql.operand_after(index + 2)
        if first is not None and last is not None:
            text = template.format(sql.slice(first, index), sql.slice(index + 2, last))
            yield [Edit(sql[first].start, sql[last - 1].end, text)]
