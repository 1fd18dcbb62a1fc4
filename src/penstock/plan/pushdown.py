"""Pushdown: the columns and rows that a query reads from a source."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sdk import Conjunct

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "in")


@dataclass(frozen=True)
class Pushdown:
    """The columns in use (None: all), and conjuncts that every row in use passes."""

    columns: frozenset[str] | None = None
    conjuncts: tuple[Conjunct, ...] = ()

    def union(self, other: Pushdown) -> Pushdown:
        """Returns the pushdown of two readers of the same rows."""
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = self.columns | other.columns
        common = tuple(conjunct for conjunct in self.conjuncts if conjunct in other.conjuncts)
        return Pushdown(columns, common)

    def simplify(self) -> Pushdown:
        """Returns the pushdown without duplicates, and without `notnull` for compared columns."""
        compared = {conjunct.column for conjunct in self.conjuncts if conjunct.op in _COMPARISONS}
        distinct = dict.fromkeys(
            conjunct
            for conjunct in self.conjuncts
            if conjunct.op != "notnull" or conjunct.column not in compared
        )
        return Pushdown(self.columns, tuple(distinct))


EVERYTHING = Pushdown()
"""All columns of all rows."""
