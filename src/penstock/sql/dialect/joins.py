"""Joins of windows: rows of two windowed relations meet in the same window."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.sql.dialect.identifiers import quoted
from penstock.sql.dialect.lineage import Outputs
from penstock.sql.dialect.query import Part, Select, Source
from penstock.sql.dialect.text import Edit
from penstock.sql.dialect.tokens import Sql


def join_edits(sql: Sql, select: Select, outputs: Outputs) -> Iterator[Edit]:
    """Yields the equality of windows where the condition of a join does not have it."""
    windowed = [source for source in select.sources if outputs[source].windows]
    for left, right in pairwise(windowed):
        columns = next(iter(outputs[left].windows)), next(iter(outputs[right].windows))
        specs = [outputs[left].windows[columns[0]], outputs[right].windows[columns[1]]]
        owners = left.alias or left.name, right.alias or right.name
        if specs[0] != specs[1] or specs[0] is None or not all(owners):
            continue
        if right.using is not None and columns[0] == columns[1]:
            yield from _using_edits(sql, right.using, columns[0])
        if right.condition is None or _compares(sql, right, columns):
            continue
        first, last = right.condition
        equal = " = ".join(
            f"{quoted(owner or '')}.{quoted(column)}"
            for owner, column in zip(owners, columns, strict=True)
        )
        yield Edit(sql[first].start, sql[first].start, "(")
        yield Edit(sql[last - 1].end, sql[last - 1].end, f") AND {equal}")


def _using_edits(sql: Sql, using: Part, column: str) -> Iterator[Edit]:
    """Yields the column of windows as a further column of USING."""
    first, last = using
    names = [token.value.lower() for token in sql.tokens[first:last] if token.is_name]
    if names and column not in names:
        yield Edit(sql[last - 1].end, sql[last - 1].end, f", {quoted(column)}")


def reference_edits(sql: Sql, select: Select, outputs: Outputs) -> Iterator[Edit]:
    """Yields the owner of references to windows, as `window.start`, that two relations have.

    A window without an alias has no name in Arroyo, so the reference is to the other relation.
    """
    if len(select.sources) < 2:
        return
    for name in {name for source in select.sources for name in outputs[source].unnamed}:
        owners = [source for source in select.sources if name in outputs[source].windows]
        named = [source for source in owners if name not in outputs[source].unnamed]
        owner = (named[0].alias or named[0].name) if len(named) == 1 else None
        if owner is None or len(owners) < 2:
            continue
        for index in _references(sql, select, name):
            yield Edit(sql[index].start, sql[index].start, f"{quoted(owner)}.")


def _references(sql: Sql, select: Select, name: str) -> Iterator[int]:
    """Yields the tokens of references to a column without an owner, outside of subqueries."""
    relations = [source.part for source in select.sources]
    whole = {item.expression for item in select.items} | set(select.groups)
    for index in range(*select.part):
        token = sql[index]
        if not token.is_name or token.value.lower() != name or sql.is_sign(index - 1, "."):
            continue
        if any(first <= index < last for first, last in relations):
            continue
        if sql.is_sign(index + 1, ".") or (index, index + 1) in whole:
            yield index


def _compares(sql: Sql, source: Source, columns: tuple[str, str]) -> bool:
    """Returns whether the condition of a join names the windows."""
    first, last = source.condition or (0, 0)
    names = {token.value.lower() for token in sql.tokens[first:last] if token.is_name}
    return all(column in names for column in columns)
