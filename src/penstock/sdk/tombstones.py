"""Records without a value as deletes of the rows with their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import PlanError
from penstock.sdk.keys import KEY, decode_keys
from penstock.sdk.operations import Operation
from penstock.sdk.record import DecodeFailure, Rows
from penstock.sdk.source import Source

Decode = Callable[[Any, pa.BinaryArray, pa.Schema], Rows]


def decode_with_deletes(source: Source[Any], batch: pa.RecordBatch, decode: Decode) -> Rows:
    """Decodes payloads as changes: a record without a value but with a key is a delete.

    Other records are updates without the row before, unless the format carries operations.
    """
    assert source.format is not None and source.columns is not None
    payloads, keys = batch.column("payload"), batch.column(KEY)
    deleted = pc.and_(payloads.is_null(), keys.is_valid())
    kept = pc.indices_nonzero(pc.invert(deleted)).cast(pa.int64())
    updates = _updates(source, payloads.take(kept), decode)
    if not deleted.true_count:
        return updates
    removed = pc.indices_nonzero(deleted).cast(pa.int64())
    deletes = _deletes(source, keys.take(removed))
    rows = pa.Table.from_batches([updates.rows, deletes.rows]).combine_chunks().to_batches()
    index = pa.concat_arrays([_taken(kept, updates), _taken(removed, deletes)])
    order = pa.array(np.argsort(index.to_numpy(), kind="stable"))
    failures = _moved(updates, kept) + _moved(deletes, removed)
    empty = pa.RecordBatch.from_pylist([], source.columns)
    return Rows(
        (rows[0] if rows else empty).take(order),
        index.take(order),
        sorted(failures, key=lambda failure: (failure[0], failure.part or 0)),
    )


def _updates(source: Source[Any], payloads: pa.BinaryArray, decode: Decode) -> Rows:
    assert source.format is not None and source.columns is not None
    if source.format.carries_operations:
        return decode(source.format, payloads, source.columns)
    place = source.columns.get_field_index(source.operation_column)
    decoded = decode(source.format, payloads, source.columns.remove(place))
    operations = pa.repeat(pa.scalar(Operation.UPDATE.value), decoded.rows.num_rows)
    rows = decoded.rows.add_column(place, source.columns.field(place), operations)
    return decoded._replace(rows=rows.cast(source.columns))


def _deletes(source: Source[Any], keys: pa.BinaryArray) -> Rows:
    """Returns rows with the columns of keys and nulls."""
    assert source.columns is not None
    missing = [name for name in source.primary_key if name not in source.columns.names]
    if missing:
        message = f'the source has no column "{missing[0]}" of its primary key'
        raise PlanError(message, code="unknown-column")
    fields = pa.schema([source.columns.field(name) for name in source.primary_key])
    rows, index, failures = decode_keys(keys, source.key_format, fields)
    arrays = [
        rows.column(field.name)
        if field.name in source.primary_key
        else pa.repeat(pa.scalar(Operation.DELETE.value), rows.num_rows)
        if field.name == source.operation_column
        else pa.nulls(rows.num_rows, field.type)
        for field in source.columns
    ]
    bad = [DecodeFailure(number, None, None, error) for number, error in failures]
    return Rows(pa.RecordBatch.from_arrays(arrays, schema=source.columns), index, bad)


def _taken(records: pa.Int64Array, decoded: Rows) -> pa.Int64Array:
    """Returns the index of the record of each row."""
    return records if decoded.index is None else records.take(decoded.index)


def _moved(decoded: Rows, records: pa.Int64Array) -> list[DecodeFailure]:
    return [each._replace(index=records[each[0]].as_py()) for each in decoded.failures]
