"""A source of a table or a query that tasks read in parallel ranges of a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk.capability import Capability
from penstock.sdk.columns.names import find_name
from penstock.sdk.database.config import RangesConfig
from penstock.sdk.database.cursor import Values
from penstock.sdk.database.ranges import Range, ranges_of
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.source import TableSource
from penstock.sdk.record import Read
from penstock.sdk.source import Offset

T = TypeVar("T", bound=RangesConfig)
Part = tuple[Values | None, Values, Range | None]


class RangedSource(TableSource[T], Generic[T]):
    """Base class of sources whose rows several tasks can read.

    A batch has the rows between two positions of the cursor, and a partition those of them in a
    range of `partition_column`.
    """

    parallelism = "a range of partition_column, otherwise the table"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.config.partition_column is not None:
            self.capabilities = self.capabilities - {Capability.ORDERED}

    def check(self) -> None:
        super().check()
        with self._transaction():
            self._range_column()

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:  # type: ignore[override]
        parts = super().partitions(start, end)
        if self.config.partition_column is None:
            return [(*part, None) for part in parts]
        return [(*part, each) for part in parts for each in self._ranges(*part)]

    def read(self, partition: Part, read: Read) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        start, end, range_ = partition
        assert self.columns is not None
        cursor = self._cursor
        relation, name = cursor.relation, self._name
        bounds: Values = ()
        if range_ is not None:
            condition, bounds = range_.condition(self._connection.dialect)
            inner = f"SELECT * FROM {relation} WHERE {condition}"
            relation = self._connection.dialect.from_query(inner, "penstock_range")
            name = f"{name}, range {range_.number}"
        items = ", ".join(map(self.select_item, self.columns))
        query, parameters = f"SELECT {items} FROM {relation}", bounds
        if cursor.columns:
            query, window = replace(cursor, relation=relation).rows(items, start, end)
            parameters += window
        yield from self.read_query(query, parameters, RowConversion(name, self.columns, read))
        self._connection.rollback()

    def _ranges(self, start: Values | None, end: Values) -> Sequence[Range]:
        field, cursor = self._range_column(), self._cursor
        bounds = (self.config.lower_bound, self.config.upper_bound)
        found: Sequence[Any] = (None, None)
        if None in bounds:
            query = cursor.extent(field.name, start, end if cursor.columns else None)
            ((*found,),) = self._connection.query(*query)
            self._connection.rollback()
        return ranges_of(field, self.config.partitions, bounds, found)

    def _range_column(self) -> Any:
        """Returns the partition column as the database spells it. Raises OptionError."""
        column = self.config.partition_column
        if column is None:
            return None
        columns = self._target_columns()
        index = find_name(column, columns.names)
        if index < 0:
            raise OptionError.of(
                "partition_column", message=f'{self._name} has no column "{column}"',
                code="unknown-column", hint=did_you_mean(column, columns.names),
            )  # fmt: skip
        ranges_of(
            columns.field(index), 1, (self.config.lower_bound, self.config.upper_bound), (0, 0)
        )
        return columns.field(index)
