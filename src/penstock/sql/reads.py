"""Reads of relations in the tree of a query, also through common table expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set

from sqlglot import exp

Queries = Mapping[str, exp.Expr]
"""Common table expressions by their names in lower case."""


def count_reads(tree: exp.Expr, ctes: Queries, seen: frozenset[str] = frozenset()) -> Counter[str]:
    """Returns how often a part of a query reads each relation, by name in lower case.

    `seen` are the common table expressions around the part: one may read itself.
    """
    counts: Counter[str] = Counter()
    for table in _find_tables(tree):
        name = table.name.lower()
        if name in ctes and name not in seen:
            counts.update(count_reads(ctes[name], ctes, seen | {name}))
        else:
            counts[name] += 1
    return counts


def reading_parts(tree: exp.Expr, ctes: Queries, relations: Set[str]) -> Callable[[exp.Expr], bool]:
    """Returns the condition that a part of the tree reads one of the relations.

    The names are in lower case. The tree is walked once, for all its parts.
    """
    reading = {
        name: not relations.isdisjoint(count_reads(query, ctes, frozenset([name])))
        for name, query in ctes.items()
    }
    found: set[int] = set()
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if not reading.get(name, name in relations):
            continue
        part: exp.Expr | None = table
        while part is not None and id(part) not in found and not isinstance(part, exp.CTE):
            found.add(id(part))
            part = part.parent
    return lambda part: id(part) in found


def _find_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yields the tables in a part, without those in common table expressions that it defines."""
    for node in tree.walk(prune=lambda node: isinstance(node, exp.CTE)):
        if isinstance(node, exp.Table):
            yield node
