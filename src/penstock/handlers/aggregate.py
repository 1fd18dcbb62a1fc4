"""The handler `aggregate`: one row for each batch.

Input: a time column of type TIMESTAMP in each batch. Output: a batch for each group, with a row for
each input batch in the order of arrival. Its columns are the time, the measurement if it is no
grouping column, the grouping columns by name, and the aggregates. Batches without rows have no
output row.

`first` and `last` are the values at the earliest and the latest time; of equal times the first and
the last to arrive. `min`, `max` and `mean` skip nulls. The mean of numbers and booleans is a
DOUBLE. An aggregate of a missing column, or of nulls, is null. Types: int64, double, string, bool,
timestamp; the last three only where the function supports them.

No state. Errors: a missing time or grouping column, a type that a function does not support,
batches of a group whose columns have different types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.handlers.aggregate_functions import Function, Rows, aggregate
from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import (
    Role,
    first_values,
    group_key,
    group_of,
    measurement_column,
    time_column,
    with_group,
    with_measurement,
    with_role,
    with_time,
)
from penstock.handlers.rows import column

MISSING_TIME = "Time column with name {} should be presented"
TIME_TYPE = "Aggregation currently supports arrow::Type::TIMESTAMP type for timestamp field only"


@dataclass(frozen=True)
class AggregateColumn:
    """A function of a column, with the name and the role of its result."""

    function: Function
    column: str
    result: str
    role: Role = Role.FIELD


class Aggregate(Handler):
    """Aggregates batches. `time_function` computes the time of a row, called `time_name`."""

    def __init__(
        self, columns: Sequence[AggregateColumn], time_function: Function = "last",
        time_name: str = "time",
    ) -> None:  # fmt: skip
        super().__init__()
        names = [time_name, *(each.result for each in columns)]
        for name in names:
            if names.count(name) > 1:
                raise HandlerError.invalid(f"Duplicate of column names: {name}")
        self._columns, self._time_function, self._time_name = columns, time_function, time_name

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return self.handle_all([batch])

    def handle_all(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        groups: dict[str, Batches] = {}
        for batch in batches:
            if batch.num_rows:
                groups.setdefault(group_key(batch.schema), []).append(batch)
        return [self._aggregated(group) for group in groups.values()]

    def _aggregated(self, batches: Batches) -> pa.RecordBatch:
        """Returns a row for each batch of one group."""
        first = batches[0]
        rows = [_rows(batch) for batch in batches]
        times = [each.time(self._time_function) for each in rows]
        columns = [(pa.field(self._time_name, times[0].type), times)]
        grouping = [n for n in group_of(first.schema) if n != time_column(first.schema)]
        measurement = measurement_column(first.schema)
        if measurement is not None and measurement not in grouping:
            values = [batch.column(_index(batch, measurement))[0] for batch in batches]
            columns.append((first.schema.field(measurement), values))
        for name in grouping:
            value = first.column(_index(first, name))[0]
            columns.append((first.schema.field(name), [value] * len(batches)))
        columns += [self._aggregate(each, rows) for each in self._columns]
        return self._batch(columns, grouping, measurement)

    def _aggregate(
        self, item: AggregateColumn, rows: Sequence[Rows]
    ) -> tuple[pa.Field, list[pa.Scalar]]:
        """Returns the field and the values of an aggregate, null where a batch lacks the column."""
        values = [aggregate(item.function, each, item.column) for each in rows]
        types = {value.type for value in values if not pa.types.is_null(value.type)}
        if len(types) > 1:
            raise HandlerError.type(
                f"Column {item.column} has different types in the batches of a group: "
                f"{', '.join(sorted(map(str, types)))}"
            )
        kind = types.pop() if types else pa.null()
        found = [value if value.type == kind else pa.scalar(None, kind) for value in values]
        return with_role(pa.field(item.result, kind), item.role), found

    def _batch(
        self, columns: list[tuple[pa.Field, list[pa.Scalar]]], grouping: Sequence[str],
        measurement: str | None,
    ) -> pa.RecordBatch:  # fmt: skip
        fields = [field for field, _ in columns]
        names = [field.name for field in fields]
        for name in names:
            if names.count(name) > 1:
                raise HandlerError.missing(f"Duplicate of column names: {name}")
        arrays = [_array(values, field) for field, values in columns]
        schema = with_time(pa.schema(fields), self._time_name)
        if measurement is not None:
            schema = with_measurement(schema, measurement)
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        group = first_values(batch, grouping)
        return batch.replace_schema_metadata(with_group(schema, group).metadata)


def _rows(batch: pa.RecordBatch) -> Rows:
    name = time_column(batch.schema)
    times = column(batch, name)
    if times is None:
        raise HandlerError.invalid(MISSING_TIME.format(name))
    if not pa.types.is_timestamp(times.type):
        raise HandlerError.unsupported(TIME_TYPE)
    return Rows(batch, times)


def _index(batch: pa.RecordBatch, name: str) -> int:
    index: int = batch.schema.get_field_index(name)
    if index < 0:
        raise HandlerError.missing(f"Column {name} of the group or the measurement is missing")
    return index


def _array(values: Sequence[pa.Scalar], field: pa.Field) -> pa.Array:
    types = {str(value.type) for value in values}
    if len(types) > 1:
        raise HandlerError.type(
            f"Column {field.name} has different types in the batches of a group: "
            f"{', '.join(sorted(types))}"
        )
    return pa.concat_arrays([pa.array([value], field.type) for value in values])
