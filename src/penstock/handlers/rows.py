"""Rows of batches: order by columns, seconds of times, selection and concatenation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.metadata import time_column

Indexes = npt.NDArray[np.int64]
TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """Returns a column, or None if no column, or several, have this name."""
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def time_values(batch: pa.RecordBatch) -> pa.TimestampArray:
    """Returns the time column. Raises HandlerError without one of type TIMESTAMP."""
    name = time_column(batch.schema)
    times = column(batch, name)
    if times is None:
        raise HandlerError.invalid(f"Time column with name {name} should be presented")
    if not pa.types.is_timestamp(times.type):
        raise HandlerError.invalid(f"Column {name} must have 18 arrow type")
    return times


def ticks(times: pa.TimestampArray) -> Indexes:
    """Returns times as integers of their unit; a null is 0."""
    integers = times.view(pa.int64())
    if integers.null_count:
        integers = integers.fill_null(0)
    return np.asarray(integers.to_numpy())


def whole(values: Indexes, divisor: int) -> Indexes:
    """Returns quotients without their fractions, as toward zero."""
    if values.size and values.min() >= 0:
        return np.asarray(values // divisor, np.int64)
    quotients, remainders = np.divmod(values, divisor)
    return np.asarray(quotients + ((values < 0) & (remainders != 0)), np.int64)


def seconds(times: pa.TimestampArray) -> Indexes:
    """Returns times as whole seconds, without their fractions; a null is 0."""
    return whole(ticks(times), TICKS_PER_SECOND[times.type.unit])


def order_by(batch: pa.RecordBatch, names: Sequence[str]) -> Indexes:
    """Returns the stable ascending order of the rows: NaN after numbers, nulls last.

    Missing columns are ignored. Raises HandlerError if a type has no order.
    """
    keys = [values for name in names if (values := column(batch, name)) is not None]
    table = pa.table(keys, names=[str(index) for index in range(len(keys))])
    if not keys:
        return np.arange(batch.num_rows)
    try:
        order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        types = ", ".join(f"array[{key.type}]" for key in keys)
        message = f"Function array_sort_indices has no kernel matching input types ({types})"
        raise HandlerError.unsupported(message) from None
    return np.asarray(order.to_numpy(zero_copy_only=False), np.int64)


def sort_by_time(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch in the order of its times; equal times keep their order."""
    name = time_column(batch.schema)
    times = column(batch, name)
    if times is not None and pa.types.is_timestamp(times.type) and is_ordered(times):
        return batch
    return take(batch, order_by(batch, [name]))


def is_ordered(times: pa.TimestampArray) -> bool:
    """Returns whether times have no null, and none is before the one in front of it."""
    if times.null_count:
        return False
    values = ticks(times)
    return bool((values[1:] >= values[:-1]).all())


def take(batch: pa.RecordBatch, rows: Indexes) -> pa.RecordBatch:
    """Returns rows of a batch, with its metadata."""
    if len(rows) == batch.num_rows and bool((rows == np.arange(len(rows))).all()):
        return batch
    return batch.take(pa.array(rows, pa.int64()))


def concatenate(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Returns one batch for each run of batches with equal columns.

    Its metadata are those of the first batch.
    """
    runs: list[list[pa.RecordBatch]] = []
    for batch in batches:
        if runs and _has_columns(batch.schema, runs[-1][0].schema):
            runs[-1].append(batch)
        else:
            runs.append([batch])
    return [joined(run) for run in runs]


def _has_columns(schema: pa.Schema, other: pa.Schema) -> bool:
    return schema.equals(other) or (schema.names, schema.types) == (other.names, other.types)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of batches with equal columns, and the metadata of the first one."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    arrays = [
        pa.concat_arrays([batch.column(index) for batch in batches]) for index in range(len(schema))
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the columns of a schema: null where the batch lacks a column."""
    columns = [column(batch, field.name) for field in schema]
    arrays = [
        pa.nulls(batch.num_rows, field.type) if values is None else values.cast(field.type)
        for field, values in zip(schema, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def append_column(batch: pa.RecordBatch, field: pa.Field, values: pa.Array) -> pa.RecordBatch:
    """Returns a batch with one more column. Raises HandlerError if its name is in use."""
    if field.name in batch.schema.names:
        raise HandlerError.missing(f"Duplicate of column names: {field.name}")
    schema = batch.schema.append(field)
    return pa.RecordBatch.from_arrays([*batch.columns, values], schema=schema)


def changed_rows(batch: pa.RecordBatch, names: Sequence[str]) -> list[int]:
    """Returns the rows whose values of columns differ from those of the row before.

    0.0 equals -0.0, and null equals null. Missing columns are ignored.
    """
    changes = np.zeros(max(batch.num_rows - 1, 0), bool)
    for name in names:
        if (values := column(batch, name)) is not None:
            changes |= _differences(values)
    return (np.flatnonzero(changes) + 1).tolist()


def _differences(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Returns whether each value but the first differs from the one before it."""
    codes = np.asarray(values.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False))
    differences: npt.NDArray[np.bool_] = codes[1:] != codes[:-1]
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        differences &= numbers[1:] != numbers[:-1]
    return differences
