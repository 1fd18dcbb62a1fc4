"""Joins of streams without an equality, which Spark does not compute as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain

from sqlglot import exp

from penstock.sql.facts import Facts
from penstock.sql.parsing import conjuncts


def joins_without_equality(facts: Facts, streaming: Set[str]) -> bool:
    """Returns whether the query joins two of the `streaming` relations without an equality.

    A column without the name of its relation may belong to each of them.
    """
    if facts.tree is None:
        return False
    streams = {name.lower() for name in streaming}
    selects = facts.tree.find_all(exp.Select)
    return any(_has_unequal_join(facts, select, streams) for select in selects)


def _has_unequal_join(facts: Facts, select: exp.Select, streams: Set[str]) -> bool:
    source = select.args.get("from_") or select.args.get("from")
    joins: list[exp.Join] = select.args.get("joins") or []
    if source is None or not any(facts.count_reads_in(join, streams) for join in joins):
        return False
    sides = [source.this, *(join.this for join in joins)]
    names = [str(side.alias_or_name).lower() for side in sides]
    reads = [bool(facts.count_reads_in(side, streams)) for side in sides]
    where = select.args.get("where")
    for index, join in enumerate(joins, 1):
        if not reads[index] or not any(reads[:index]) or join.method or join.args.get("using"):
            continue
        on, inner = join.args.get("on"), not (join.side or join.kind in ("SEMI", "ANTI"))
        conditions = [on] if on is not None else []
        conditions += [where.this] if inner and where is not None else []
        equalities = list(chain.from_iterable(map(_equalities, conditions)))
        # Spark reorders relations that have conditions in WHERE only.
        others = names[:index] if on is not None else [*names[:index], *names[index + 1 :]]
        if not any(_relates(equal, names[index], {*others}) for equal in equalities):
            return True
    return False


def _equalities(condition: exp.Expr) -> Iterator[exp.Binary]:
    """Yields the equalities that a condition requires."""
    for part in conjuncts(condition):
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            yield part


def _relates(equality: exp.Binary, name: str, others: Set[str]) -> bool:
    """Returns whether one side of an equality may be of a relation, the other one of `others`."""
    known = {name, *others}
    left, right = (_owners(side, known) for side in (equality.left, equality.right))
    return any(
        own and rest and own <= {name, None} and rest <= {*others, None}
        for own, rest in ((left, right), (right, left))
    )


def _owners(expression: exp.Expr, known: Set[str]) -> set[str | None]:
    """Returns the relations of the columns of an expression; None stands for an unknown one."""
    first = (column.parts[0].name.lower() for column in expression.find_all(exp.Column))
    return {name if name in known else None for name in first}
