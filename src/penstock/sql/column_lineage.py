"""Lineage of columns: the columns of a relation that hold keys, event times and operations."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from penstock.core.names import quote_name
from penstock.sql.completeness import selected_times
from penstock.sql.keyed_rows import KeyedRows
from penstock.sql.primary_keys import computed_rows


@dataclass(frozen=True)
class ColumnLineage:
    """The lineage of a relation that keeps all columns of a single input."""

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        """Returns the columns of the output, and those that are proved to hold a primary key."""
        rows = list(inputs.values())
        return rows[0] if len(rows) == 1 else KeyedRows(origin=())

    def time_columns(self, times: Set[str]) -> Set[str] | None:
        """Returns the columns of the output that may have event times or windows, by name.

        `times` are those of the inputs. None if they are unknown.
        """
        return times

    def operation(self, column: str) -> str | None:
        """Returns the operation column of the output for that of the input; None if dropped.

        The output must have this column. It is not called for a relation with state.
        """
        return column


@dataclass(frozen=True)
class UntimedColumns(ColumnLineage):
    """The columns of a single input, none of which is an event time any more."""

    def time_columns(self, times: Set[str]) -> Set[str]:
        return frozenset()


@dataclass(frozen=True)
class NewColumns(ColumnLineage):
    """Columns of which none is known to be one of an input."""

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        return KeyedRows(origin=())

    def time_columns(self, times: Set[str]) -> Set[str]:
        return frozenset()


@dataclass(frozen=True)
class KeyedColumns(ColumnLineage):
    """The columns of a single input, which has one row for each value of a key."""

    key: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return KeyedRows.by(self.key, rows.columns)


@dataclass(frozen=True)
class RenamedColumns(ColumnLineage):
    """The columns of a single input with new names, by old name."""

    names: Mapping[str, str]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return rows.rename(self._lower())

    def time_columns(self, times: Set[str]) -> Set[str]:
        names = self._lower()
        return {names.get(name.lower(), name) for name in times}

    def operation(self, column: str) -> str | None:
        return self._lower().get(column.lower(), column)

    def _lower(self) -> dict[str, str]:
        return {old.lower(): new for old, new in self.names.items()}


@dataclass(frozen=True)
class RemainingColumns(ColumnLineage):
    """The columns of a single input but those that are dropped."""

    dropped: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return rows.without(self.dropped)

    def operation(self, column: str) -> str | None:
        return None if column.lower() in {name.lower() for name in self.dropped} else column


@dataclass(frozen=True)
class ChangedColumns(ColumnLineage):
    """The columns of a single input, of which some are added or have other values."""

    changed: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        columns = rows.columns
        if columns is not None:
            known = {column.lower() for column in columns}
            columns = (*columns, *(name for name in self.changed if name.lower() not in known))
        return replace(rows.without(self.changed), columns=columns)

    def time_columns(self, times: Set[str]) -> Set[str]:
        changed = {name.lower() for name in self.changed}
        return {name for name in times if name.lower() not in changed}


@dataclass(frozen=True)
class SelectedColumns(ColumnLineage):
    """The items of SELECT over a single input, in Spark SQL."""

    items: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return computed_rows(self.items, rows)

    def time_columns(self, times: Set[str]) -> Set[str]:
        return selected_times(self.items, times)


@dataclass(frozen=True)
class AddedColumns(ColumnLineage):
    """The columns of a single input, and columns that are added or replaced.

    `names` are their names, and `items` the items of SELECT that compute them.
    """

    names: tuple[str, ...]
    items: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        replaced = ", ".join(map(quote_name, self.names))
        changed = computed_rows([f"* EXCEPT ({replaced})", *self.items], rows)
        if rows.columns is None:
            return changed
        known = {column.lower() for column in rows.columns}
        added = [name for name in self.names if name.lower() not in known]
        return replace(changed, columns=(*rows.columns, *added))

    def time_columns(self, times: Set[str]) -> Set[str]:
        replaced = {name.lower() for name in self.names}
        kept = {name for name in times if name.lower() not in replaced}
        return kept | selected_times(self.items, times)


@dataclass(frozen=True)
class ComputedColumns(ColumnLineage):
    """Columns that are computed, and none of which is known to have the values of an input."""

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        return KeyedRows(origin=())

    def time_columns(self, times: Set[str]) -> Set[str]:
        return frozenset()

    def operation(self, column: str) -> str | None:
        return None
