"""Files that hold Arrow batches, or what is easily turned into them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.kit.columns import conform as fit
from penstock.sdk.kit.columns import conform_each, is_list, projected
from penstock.sdk.record import Read


def read_batches(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, origin: str, read: Read
) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
    """The rows as `schema` and their numbers from 1.

    A row that does not fit is rejected; so is what follows a DecodeError of `batches`, as one
    record without payload at the position before it.
    """
    needed = projected(schema, read)
    before = 0
    while True:
        try:
            batch = next(batches, None)
        except DecodeError as error:
            read.reject(None, origin, before, error)
            return
        if batch is None:
            return
        found = conform_each(batch, needed)
        for failure in found.failures:
            read.reject(None, origin, before + failure[0] + 1, failure.error)
        count = batch.num_rows
        places = np.arange(count) if found[1] is None else found[1].to_numpy()
        if found.rows.num_rows:
            yield fit(found.rows, schema), pa.array(places + before + 1, pa.int64())
        before += count


def portable(schema: pa.Schema) -> pa.Schema:
    """The schema in types that Spark knows."""
    return pa.schema([pa.field(f.name, _portable(f.type), f.nullable) for f in schema])


def _portable(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _portable(f.type), f.nullable) for f in type_])
    if is_list(type_) or pa.types.is_fixed_size_list(type_):
        nullable = type_.value_field.nullable
        return pa.list_(pa.field("element", _portable(type_.value_type), nullable))
    if pa.types.is_map(type_):
        item = pa.field("value", _portable(type_.item_type), type_.item_field.nullable)
        return pa.map_(_portable(type_.key_type), item)
    if pa.types.is_dictionary(type_):
        return _portable(type_.value_type)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    return _simple(type_)


def _simple(type_: pa.DataType) -> pa.DataType:
    wider = {
        pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0), pa.float16(): pa.float32(), pa.date64(): pa.date32(),
        pa.large_string(): pa.string(), pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(), pa.null(): pa.string(),
    }  # fmt: skip
    return pa.binary() if pa.types.is_fixed_size_binary(type_) else wider.get(type_, type_)
