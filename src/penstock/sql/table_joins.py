"""Joins of a stream with a table whose rows depend on all rows of the stream."""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp

from penstock.sql.facts import Facts

_TESTED = ("SEMI", "ANTI")


def keeps_table_rows(facts: Facts, streaming: Set[str]) -> bool:
    """Returns whether a join returns rows of a table by whether the stream has a match.

    `streaming` are the relations that are streams; the others are tables.
    """
    if facts.tree is None:
        return False
    streams = {name.lower() for name in streaming}
    return any(
        _keeps_table_rows(facts, select, streams) for select in facts.tree.find_all(exp.Select)
    )


def _keeps_table_rows(facts: Facts, select: exp.Select, streams: Set[str]) -> bool:
    source = select.args.get("from_") or select.args.get("from")
    left_streams = source is not None and facts.count_reads_in(source, streams) > 0
    for join in select.args.get("joins") or ():
        right_streams = facts.count_reads_in(join.this, streams) > 0
        side = join.side.upper() or ("LEFT" if join.kind.upper() in _TESTED else "")
        kept = {"LEFT": [left_streams], "RIGHT": [right_streams]}.get(side, [])
        kept = [left_streams, right_streams] if side == "FULL" else kept
        if left_streams != right_streams and not all(kept):
            return True
        left_streams = left_streams or right_streams
    return False
