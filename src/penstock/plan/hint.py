"""What a query needs of a source, so that the rest can be left out early."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sdk import Conjunct

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "in")


@dataclass(frozen=True)
class Hint:
    """The columns that are used (None: all), and conjuncts that every row that is used meets."""

    columns: frozenset[str] | None = None
    conjuncts: tuple[Conjunct, ...] = ()

    def shared(self, other: Hint) -> Hint:
        """What two readers of the same rows need together."""
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = self.columns | other.columns
        return Hint(columns, tuple(each for each in self.conjuncts if each in other.conjuncts))

    def terse(self) -> Hint:
        """Without what is said twice: a column that is compared is not null."""
        compared = {each.column for each in self.conjuncts if each.op in _COMPARISONS}
        told = dict.fromkeys(
            each for each in self.conjuncts if each.op != "notnull" or each.column not in compared
        )
        return Hint(self.columns, tuple(told))


EVERYTHING = Hint()
"""All columns of all rows."""
