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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.handlers.aggregate_functions import Function, Segments
from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import (
    GROUP,
    Role,
    group_key,
    group_of,
    measurement_column,
    time_column,
    with_group_of,
    with_measurement,
    with_role,
    with_schema_value,
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

    rows_of_batches = True

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
        outputs: dict[str, pa.RecordBatch] = {}
        for keys in _alike(groups):
            members = [groups[key] for key in keys]
            outputs |= zip(keys, self._aggregated(members), strict=True)
        return [outputs[key] for key in groups]

    def _aggregated(self, groups: Sequence[Batches]) -> Batches:
        """Returns a batch for each group, with a row for each of its batches."""
        batches = [batch for group in groups for batch in group]
        first, sizes = batches[0].schema, [len(group) for group in groups]
        counts = np.array([batch.num_rows for batch in batches])
        segments = Segments(counts, _joined([_times(batch) for batch in batches], "time"))
        times = segments.time(self._time_function)
        columns = [(pa.field(self._time_name, times.type), times)]
        grouping = [name for name in group_of(first) if name != time_column(first)]
        measurement = measurement_column(first)
        if measurement is not None and measurement not in grouping:
            values = _joined([_required(each, measurement)[:1] for each in batches], measurement)
            columns.append((first.field(measurement), values))
        numbers = pa.array(np.repeat(np.arange(len(groups)), sizes))
        for name in grouping:
            values = _joined([_required(group[0], name)[:1] for group in groups], name)
            columns.append((first.field(name), values.take(numbers)))
        for each in self._columns:
            values = _aggregate(each, segments, batches)
            columns.append((with_role(pa.field(each.result, values.type), each.role), values))
        rows = self._batch(columns, measurement)
        starts = np.cumsum([0, *sizes]).tolist()
        return [with_group_of(rows.slice(i, j - i), grouping) for i, j in pairwise(starts)]

    def _batch(
        self, columns: Sequence[tuple[pa.Field, pa.Array]], measurement: str | None
    ) -> pa.RecordBatch:
        names = [field.name for field, _ in columns]
        for name in names:
            if names.count(name) > 1:
                raise HandlerError.missing(f"Duplicate of column names: {name}")
        schema = with_time(pa.schema([field for field, _ in columns]), self._time_name)
        if measurement is not None:
            schema = with_measurement(schema, measurement)
        return pa.RecordBatch.from_arrays([values for _, values in columns], schema=schema)


def _alike(groups: Mapping[str, Batches]) -> list[list[str]]:
    """Returns the keys of groups, divided by columns, roles and names of grouping columns.

    A group whose batches differ is alone.
    """
    alike: list[tuple[pa.Schema, list[str] | None, list[str]]] = []
    for key, group in groups.items():
        first = group[0].schema
        schema, names = with_schema_value(first, GROUP, None), [*group_of(first)]
        is_uniform = all(each.schema.equals(first, check_metadata=True) for each in group[1:])
        same = (
            keys for known, known_names, keys in alike
            if is_uniform and names == known_names and known.equals(schema, check_metadata=True)
        )  # fmt: skip
        keys = next(same, None)
        if keys is None:
            alike.append((schema, names if is_uniform else None, [key]))
        else:
            keys.append(key)
    return [keys for _, _, keys in alike]


def _times(batch: pa.RecordBatch) -> pa.TimestampArray:
    name = time_column(batch.schema)
    times = column(batch, name)
    if times is None:
        raise HandlerError.invalid(MISSING_TIME.format(name))
    if not pa.types.is_timestamp(times.type):
        raise HandlerError.unsupported(TIME_TYPE)
    return times


def _required(batch: pa.RecordBatch, name: str) -> pa.Array:
    values = column(batch, name)
    if values is None:
        raise HandlerError.missing(f"Column {name} of the group or the measurement is missing")
    return values


def _aggregate(item: AggregateColumn, segments: Segments, batches: Batches) -> pa.Array:
    """Returns an aggregate of each batch, null where a batch lacks the column."""
    found = [column(batch, item.column) for batch in batches]
    known = [each for each in found if each is not None]
    if len(known) == len(found) and len({each.type for each in known}) == 1:
        return segments.aggregate(item.function, _joined(known, item.column))
    values = [
        pa.nulls(1) if each is None else segment.aggregate(item.function, each)
        for segment, each in zip(segments.each(), found, strict=True)
    ]
    typed = [each for each in values if not pa.types.is_null(each.type)]
    kind = _joined(typed, item.column).type if typed else pa.null()
    return _joined([each.cast(kind) for each in values], item.column)


def _joined(arrays: Sequence[pa.Array], name: str) -> pa.Array:
    types = {each.type for each in arrays}
    if len(types) > 1:
        raise HandlerError.type(
            f"Column {name} has different types in the batches of a group: "
            f"{', '.join(sorted(map(str, types)))}"
        )
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
