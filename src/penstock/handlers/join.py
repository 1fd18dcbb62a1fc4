"""The handler `join`: rows of all batches of a call, merged by key and time.

Input: a time column of type TIMESTAMP, the one of the first batch, and the join columns in each
batch. Columns are of type int64, double, string, bool or timestamp. Output: one batch with the
columns of all batches, in the order of its times.

The rows of a key are merged in the order of their whole seconds, then of arrival. The first one
opens an output row; rows of at most `tolerance` seconds later are merged into it, and the next one
opens another. A column has the first value that is not null. The time is that of the opening row.
Null is a key of its own. The time, the measurement and the roles of columns remain, the group if
all batches have the same. Rows without a time are dropped.

No state: rows of different calls are not joined. Errors: a missing time or join column, a column
with different types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.handlers.aggregate_functions import SUPPORTED_TYPES
from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import (
    GROUP,
    MEASUREMENT_COLUMN,
    group_key,
    schema_value,
    time_column,
    with_schema_value,
    with_time,
)
from penstock.handlers.rows import Indexes, column, seconds, take, ticks, time_values


class Join(Handler):
    """Merges the rows of a call. `on` are columns, `tolerance` is in seconds."""

    joins_each = True

    def __init__(self, on: Sequence[str], tolerance: int = 0) -> None:
        super().__init__()
        if tolerance < 0:
            raise HandlerError.invalid(f"tolerance must not be negative, found {tolerance}")
        self._on, self._tolerance = on, tolerance

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return self.handle_all([batch])

    def handle_all(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        return self._joined([batches], [self._schema(batches)]) if batches else []

    def handle_each(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        outputs = Batches()
        for run in _runs(batches):
            schema = self._schema(run[:1])
            schemas = [with_schema_value(schema, GROUP, group_key(each.schema)) for each in run]
            outputs += self._joined([[each] for each in run], schemas)
        return outputs

    def _joined(
        self, calls: Sequence[Sequence[pa.RecordBatch]], schemas: Sequence[pa.Schema]
    ) -> Batches:
        """Returns the output of several calls whose columns are alike, in one pass."""
        batches = [batch for call in calls for batch in call]
        sizes = [sum(batch.num_rows for batch in call) for call in calls]
        rows, numbers = _combined(batches, schemas[0]), np.repeat(np.arange(len(calls)), sizes)
        nulls = time_values(rows).is_null().to_numpy(zero_copy_only=False)
        rows, numbers = self.drop_null_times(rows), numbers[~nulls]
        times = seconds(time_values(rows))
        keys = _codes([pa.array(numbers), *(rows.column(name) for name in self._on)], len(times))
        order = np.lexsort((times, keys))
        output = _output_rows(keys[order], times[order], self._tolerance)
        merged = _merged(take(rows, order), output)
        first = np.flatnonzero(np.diff(output, prepend=-1))
        numbers = numbers[order][first]
        order = np.lexsort((ticks(time_values(merged)), numbers))
        merged = take(merged, order)
        ends = np.searchsorted(numbers[order], np.arange(len(calls) + 1))
        return [
            merged.slice(start, end - start).replace_schema_metadata(schema.metadata)
            for (start, end), schema in zip(pairwise(ends.tolist()), schemas, strict=True)
        ]

    def _schema(self, batches: Sequence[pa.RecordBatch]) -> pa.Schema:
        """Returns the columns of all batches. Raises HandlerError."""
        name = time_column(batches[0].schema)
        fields: dict[str, pa.Field] = {}
        for number, batch in enumerate(batches):
            names = batch.schema.names
            for required in (name, *self._on):
                if names.count(required) != 1:
                    message = f"Column {required} is missing in batch {number}"
                    raise HandlerError.missing(message)
            for field in batch.schema:
                first = fields.setdefault(field.name, field)
                if pa.types.is_null(first.type):
                    fields[field.name] = field
                elif not pa.types.is_null(field.type):
                    _check_field(field, first, number)
        schema = with_time(pa.schema(fields.values()), name)
        measurements = [schema_value(batch.schema, MEASUREMENT_COLUMN) for batch in batches]
        measurement = next((each for each in measurements if each is not None), None)
        schema = with_schema_value(schema, MEASUREMENT_COLUMN, measurement)
        if len({group_key(batch.schema) for batch in batches}) == 1:
            schema = with_schema_value(schema, GROUP, schema_value(batches[0].schema, GROUP))
        return schema


def _runs(batches: Sequence[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yields the longest runs of batches that differ in their rows and their group only."""
    run: list[pa.RecordBatch] = []
    last: pa.Schema | None = None
    for batch in batches:
        schema = with_schema_value(batch.schema, GROUP, None)
        if last is not None and not schema.equals(last, check_metadata=True):
            yield run
            run = []
        run.append(batch)
        last = schema
    if run:
        yield run


def _check_field(field: pa.Field, first: pa.Field, number: int) -> None:
    kind = field.type
    known = (pa.int64(), pa.float64(), pa.string(), pa.bool_())
    if kind not in known and not pa.types.is_timestamp(kind):
        raise HandlerError.unsupported(SUPPORTED_TYPES)
    if kind != first.type:
        raise HandlerError.type(
            f"Column {field.name} has type {kind} in batch {number}, and {first.type} before"
        )


def _combined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Returns the rows of all batches, null where a batch lacks a column."""
    arrays = [pa.concat_arrays([_values(batch, field) for batch in batches]) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _values(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    values = column(batch, field.name)
    return pa.nulls(batch.num_rows, field.type) if values is None else values.cast(field.type)


def _codes(columns: Sequence[pa.Array], count: int) -> Indexes:
    """Returns a number for each distinct key, in the order of arrival."""
    codes = np.zeros(count, np.int64)
    for values in columns:
        encoded = values.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
        combined = codes * (int(encoded.max(initial=0)) + 1) + encoded
        _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[inverse]
    return codes


def _output_rows(keys: Indexes, times: Indexes, tolerance: int) -> Indexes:
    """Returns the number of the output row of each row, which are sorted by key and time."""
    output = np.zeros(len(keys), np.int64)
    number, key, anchor = -1, None, 0
    for row, (next_key, time) in enumerate(zip(keys.tolist(), times.tolist(), strict=True)):
        if next_key != key or time - anchor > tolerance:
            number, key, anchor = number + 1, next_key, time
        output[row] = number
    return output


def _merged(rows: pa.RecordBatch, output: Indexes) -> pa.RecordBatch:
    """Returns the first value of each column that is not null, for each output row."""
    count = int(output[-1]) + 1 if len(output) else 0
    arrays = []
    for values in rows.columns:
        valid = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        numbers, first = np.unique(output[valid], return_index=True)
        indexes, found = np.zeros(count, np.int64), np.zeros(count, bool)
        indexes[numbers], found[numbers] = valid[first], True
        arrays.append(values.take(pa.array(indexes, mask=~found)))
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
