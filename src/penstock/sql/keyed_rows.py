"""Rows of a relation, and the columns that hold their primary key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class KeyedRows:
    """The columns of a relation, and those that hold a primary key.

    `columns` are all columns in order, without an operation column; None if they are unknown.
    `types` are the types in SQL of the known ones, by name in lower case. `key` identifies a row;
    it is empty without a proved key. `origin` holds the primary key of the changes that the rows
    come from, in the order of these changes: several rows may have one key. It is empty if the key
    is lost, and None if no key is known upstream. Without `keeps_changes` a change of the input may
    have no row in the output, other than by a condition of WHERE. Rows that are no stream are a
    table. `numbered` identifies a row if a window function reads all rows, not those of a batch.
    """

    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()
    origin: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    is_stream: bool = True
    keeps_changes: bool = True
    numbered: tuple[str, ...] = ()

    @classmethod
    def by(cls, key: Sequence[str], columns: Sequence[str] | None = None) -> KeyedRows:
        """Returns rows with a known key."""
        return cls(None if columns is None else tuple(columns), tuple(key), tuple(key))

    def lost(self) -> KeyedRows:
        """Returns the rows with columns of unknown content."""
        origin = None if self.origin is None else ()
        return replace(self, columns=None, key=(), origin=origin, types={}, numbered=())

    def rename(self, names: Mapping[str, str]) -> KeyedRows:
        """Returns the rows with new names of columns, by the old names in lower case."""

        def new(columns: Sequence[str]) -> tuple[str, ...]:
            return tuple(names.get(column.lower(), column) for column in columns)

        return replace(
            self,
            columns=None if self.columns is None else new(self.columns),
            key=new(self.key),
            origin=None if self.origin is None else new(self.origin),
            types={names.get(name, name).lower(): type_ for name, type_ in self.types.items()},
            numbered=new(self.numbered),
        )

    def without(self, columns: Iterable[str]) -> KeyedRows:
        """Returns the rows without columns."""
        left_out = {column.lower() for column in columns}

        def kept(key: Sequence[str]) -> tuple[str, ...]:
            return () if any(column.lower() in left_out for column in key) else tuple(key)

        names = self.columns
        return replace(
            self,
            columns=None if names is None else tuple(n for n in names if n.lower() not in left_out),
            key=kept(self.key),
            origin=None if self.origin is None else kept(self.origin),
            types={name: type_ for name, type_ in self.types.items() if name not in left_out},
            numbered=kept(self.numbered),
        )
