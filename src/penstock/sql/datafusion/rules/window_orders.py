"""Window functions without ORDER BY: `row_number() OVER (PARTITION BY a)`, in any order."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_ORDERED = (
    "cume_dist", "dense_rank", "lag", "lead", "ntile", "percent_rank", "rank", "row_number",
)  # fmt: skip
"""Functions that require ORDER BY in Spark only."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields an order in which all rows are equal."""
    for call in sql.calls(*_ORDERED):
        over = call.closing + 1
        closing = sql.closing.get(over + 1)
        if sql.word(over) != "OVER" or not sql.is_sign(over + 1, "(") or closing is None:
            continue
        index = over + 2
        if closing == index + 1 and sql[index].is_name:
            continue
        while index < closing and sql.word(index) != "ORDER":
            index = sql.closing.get(index, index) + 1
        if index >= closing:
            place = sql[closing].start
            yield [Edit(place, place, " ORDER BY NULL")]
