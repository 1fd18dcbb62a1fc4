"""Joins of windows: rows of two windowed relations meet in the same window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from penstock.sql.dialect.lineage import Outputs
from penstock.sql.dialect.relation import Spec
from penstock.sql.text.clauses import Part, Select, Source
from penstock.sql.text.edits import Edit
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Sql

Windows = Mapping[Source, tuple[str, Spec]]
"""The columns of windows of relations."""


def join_edits(sql: Sql, select: Select, outputs: Outputs, windows: Windows) -> Iterator[Edit]:
    """Yields the equality of windows where the condition of a join does not have it."""
    left: list[Source] = []
    known: list[Source] = []
    filters: list[str] = []
    for source in select.sources:
        if source not in windows or not (source.alias or source.name):
            continue
        is_same = not known or windows[source][1] == windows[known[0]][1]
        if known and is_same:
            is_comma = source.join == ","
            condition = select.clauses.get("WHERE") if is_comma else source.condition
            columns = {windows[each][0] for each in (*known, source)}
            if source.using is not None and len(columns) == 1:
                yield from _using_edits(sql, source.using, windows[source][0])
            elif condition is not None and not _compares(
                sql, condition, source, left, windows, outputs
            ):
                equality = _equality(known, source, windows)
                if is_comma:
                    filters.append(equality)
                else:
                    yield from _and_edits(sql, condition, equality)
        words = (source.join or "").split()
        if "RIGHT" in words:
            known = [source]
        elif is_same and (not known or "FULL" in words):
            known = [*known, source]
        left.append(source)
    if filters:
        yield from _and_edits(sql, select.clauses["WHERE"], " AND ".join(filters))


def conjuncts(sql: Sql, condition: Part | None) -> Iterator[Part]:
    """Yields the parts of a condition between AND. The bounds of BETWEEN are two parts."""
    if condition is None:
        return
    first, last = condition
    position = first
    while position < last:
        if sql.word(position) == "AND":
            yield first, position
            first = position + 1
        position = sql.closing.get(position, position) + 1
    yield first, last


def _equality(known: Sequence[Source], right: Source, windows: Windows) -> str:
    """Returns the equality of a relation's windows with those to its left.

    `known` are the relations to its left of which at least one has a row where others have none.
    """
    first, *others = [_reference(each, windows) for each in known]
    window = f"coalesce({', '.join([first, *others])})" if others else first
    return f"{window} = {_reference(right, windows)}"


def _reference(source: Source, windows: Windows) -> str:
    owner = source.alias or source.name or ""
    return f"{quoted(owner)}.{quoted(windows[source][0])}"


def _and_edits(sql: Sql, part: Part, condition: str) -> Iterator[Edit]:
    first, last = part
    yield Edit(sql[first].start, sql[first].start, "(")
    yield Edit(sql[last - 1].end, sql[last - 1].end, f") AND {condition}")


def _using_edits(sql: Sql, using: Part, column: str) -> Iterator[Edit]:
    """Yields the column of windows as a further column of USING."""
    first, last = using
    names = [token.value.lower() for token in sql.tokens[first:last] if token.is_name]
    if names and column not in names:
        yield Edit(sql[last - 1].end, sql[last - 1].end, f", {quoted(column)}")


def reference_edits(sql: Sql, select: Select, outputs: Outputs) -> Iterator[Edit]:
    """Yields the owner of references to windows, as `window.start`, that two relations have.

    A window without an alias has its name in Penstock only: the reference is to the other relation.
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


def _compares(
    sql: Sql,
    condition: Part,
    right: Source,
    left: Sequence[Source],
    windows: Windows,
    outputs: Outputs,
) -> bool:
    """Returns whether a condition compares the windows of a relation with those to its left."""

    def names_windows(part: Part, source: Source) -> bool:
        columns = {windows[source][0], *outputs[source].bounds}
        return any(names_column(sql, index, source, columns) for index in range(*part))

    return any(
        names_windows(part, right) and any(names_windows(part, each) for each in left)
        for part in conjuncts(sql, condition)
    )


def names_column(sql: Sql, index: int, source: Source, columns: Set[str]) -> bool:
    """Returns whether a token names a column of a relation. A name without owner may be its."""
    if not sql[index].is_name or sql[index].value.lower() not in columns:
        return False
    owner = (source.alias or source.name or "").lower()
    return not sql.is_sign(index - 1, ".") or sql[index - 2].value.lower() == owner
