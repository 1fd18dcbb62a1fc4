"""Tables whose rows a query returns beside those of a stream, or by whether the stream has a match.

A join or union that is computed on each batch would return such rows in each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from sqlglot import exp

from penstock.sql.facts import Facts

_TESTED = ("SEMI", "ANTI")


def keeps_table_rows(facts: Facts, streaming: Set[str]) -> bool:
    """Returns whether a join keeps rows of a table by whether a stream has a match for them.

    `streaming` are the relations that are streams; the others are tables.
    """
    return any(map(facts.reads_relations, _kept_by_joins(facts, streaming)))


def merges_table_rows(facts: Facts, streaming: Set[str]) -> bool:
    """Returns whether UNION merges the rows of a table with those of a stream."""
    return any(map(facts.reads_relations, _kept_by_unions(facts, streaming)))


def keeps_constant_rows(facts: Facts, streaming: Set[str]) -> bool:
    """Returns whether a join or UNION keeps rows that the query states itself, as in VALUES."""
    kept = (*_kept_by_joins(facts, streaming), *_kept_by_unions(facts, streaming))
    return not all(map(facts.reads_relations, kept))


def _kept_by_unions(facts: Facts, streaming: Set[str]) -> Iterator[exp.Expr]:
    """Yields the tables, parts of the query without streams, that UNION merges with a stream."""
    if facts.tree is None:
        return
    is_reading = facts.reading({name.lower() for name in streaming})
    for union in facts.tree.find_all(exp.Union):
        tables = [side for side in (union.left, union.right) if not is_reading(side)]
        if len(tables) == 1:
            yield from tables


def _kept_by_joins(facts: Facts, streaming: Set[str]) -> Iterator[exp.Expr]:
    """Yields the tables, parts of the query without streams, whose rows joins keep."""
    if facts.tree is None:
        return
    is_reading = facts.reading({name.lower() for name in streaming})
    for select in facts.tree.find_all(exp.Select):
        yield from _kept_by_joins_of(select, is_reading)


def _kept_by_joins_of(
    select: exp.Select, is_reading: Callable[[exp.Expr], bool]
) -> Iterator[exp.Expr]:
    source = select.args.get("from_") or select.args.get("from")
    left = [source] if source is not None else []
    for join in select.args.get("joins") or ():
        left_streams = any(map(is_reading, left))
        right_streams = is_reading(join.this)
        side = join.side.upper() or ("LEFT" if join.kind.upper() in _TESTED else "")
        if left_streams and not right_streams and side in ("RIGHT", "FULL"):
            yield join.this
        if right_streams and not left_streams and side in ("LEFT", "FULL"):
            yield from left
        left.append(join)
