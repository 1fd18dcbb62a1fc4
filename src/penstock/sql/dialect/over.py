"""Window functions with OVER on streams: computed when the rows of a window are complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.sql.dialect.lineage import Outputs, is_aggregate
from penstock.sql.dialect.relation import InputRelation
from penstock.sql.text.clauses import Query, Select
from penstock.sql.text.sql import Sql


def computed_by_window(
    sql: Sql, query: Query, relations: Mapping[str, InputRelation], outputs: Outputs
) -> bool:
    """Returns whether a query with OVER is computed on the rows of complete windows.

    All rows of a window leave its aggregate in the same batch, so PARTITION BY with a column of
    windows is exact within a batch. A query with another OVER, or with OVER and groups, is
    updating, or computed from the whole input if the input ends.
    """
    found = [(select, index) for select in query.walk() for index in _overs(sql, select)]
    if not found or not any(relation.has_watermark for relation in relations.values()):
        return False
    if not all(_is_by_window(sql, select, index, outputs) for select, index in found):
        return False
    return not any(
        select.groups or select.distinct or is_aggregate(sql, select) for select in query.walk()
    )


def _windows(select: Select, outputs: Outputs) -> set[str]:
    """Returns the columns of windows, and of their bounds, that a query reads."""
    columns: set[str] = set()
    for source in select.sources:
        columns |= {*outputs[source].windows, *outputs[source].bounds}
    return columns


def _is_by_window(sql: Sql, select: Select, index: int, outputs: Outputs) -> bool:
    """Returns whether OVER has PARTITION BY with a column of windows."""
    opening: int | None = index + 1
    if not sql.is_sign(index + 1, "("):
        opening = _named_window(sql, select, sql[index + 1].value.lower())
    if opening is None:
        return False
    closing = sql.closing.get(opening, len(sql))
    return not _windows(select, outputs).isdisjoint(_partition(sql, opening + 1, closing))


def _named_window(sql: Sql, select: Select, name: str) -> int | None:
    """Returns the parenthesis after a name in the clause WINDOW."""
    if "WINDOW" not in select.clauses:
        return None
    for start, _ in sql.split(*select.clauses["WINDOW"], ","):
        if sql[start].value.lower() == name and sql.word(start + 1) == "AS":
            return start + 2
    return None


def _overs(sql: Sql, select: Select) -> Iterator[int]:
    nested = [source.part for source in select.sources if source.query is not None]
    for index in range(*select.part):
        is_nested = any(first <= index < last for first, last in nested)
        if sql.word(index) == "OVER" and sql.is_sign(index - 1, ")") and not is_nested:
            yield index


def _partition(sql: Sql, first: int, last: int) -> Iterator[str]:
    """Yields the names after PARTITION BY."""
    if not sql.words(first, "PARTITION", "BY"):
        return
    for token in sql.tokens[first + 2 : last]:
        if token.word in ("ORDER", "ROWS", "RANGE"):
            return
        if token.is_name:
            yield token.value.lower()
