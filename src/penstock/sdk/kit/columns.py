"""Columns of exactly the wanted type, and types as users write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.core.text import shorten
from penstock.sdk.record import Decoded, Encoded, Failure, Read

Leaf = Callable[[pa.Array, pa.DataType], pa.Array]
_STEP = 9


def cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A leaf of exactly `type_`. Raises ArrowInvalid rather than losing anything."""
    if array.type == type_:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if pa.types.is_decimal(array.type) and pa.types.is_decimal(type_):
        array = _shortened(array, type_.scale)
    return array.cast(type_)


def _shortened(array: pa.Array, scale: int) -> pa.Array:
    """Decimals with at most `_STEP` more places than `scale`.

    Arrow's division by more than a word of 32 bits is wrong for some numbers, as 2^64 - 1.
    """
    made = pa.decimal256 if pa.types.is_decimal256(array.type) else pa.decimal128
    while array.type.scale - scale > _STEP:
        array = array.cast(made(array.type.precision, array.type.scale - _STEP))
    return array


def rebuild(array: pa.Array, type_: pa.DataType, leaf: Leaf = cast) -> pa.Array:
    """`array` as `type_`, whose leaves become what `leaf(array, type)` makes of them.

    Fields of structs go by name and are null where they are missing. Raises pa.ArrowInvalid (or
    what `leaf` raises), also for a null where `type_` forbids it.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_null(array.type) or not pa.types.is_nested(type_):
        return leaf(array, type_)
    if pa.types.is_struct(type_) and pa.types.is_struct(array.type):
        return _struct(array, type_, leaf)
    if pa.types.is_map(type_) and pa.types.is_map(array.type):
        offsets, mask, inside = _offsets(array)
        keys = rebuild(array.keys[inside], type_.key_type, leaf)
        items = rebuild(array.items[inside], type_.item_type, leaf)
        items = _checked(items, type_.item_field, None)
        return pa.MapArray.from_arrays(offsets, keys, items, type=type_, mask=mask)
    if pa.types.is_list(type_) and is_list(array.type):
        offsets, mask, inside = _offsets(array)
        values = rebuild(array.values[inside], type_.value_type, leaf)
        values = _checked(values, type_.value_field, None)
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=mask)
    return leaf(array, type_)


def is_list(type_: pa.DataType) -> bool:
    """Whether it is a list with offsets, long or short."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _offsets(array: pa.Array) -> tuple[pa.Array, pa.Array | None, slice]:
    """Offsets from 0, the nulls, and the part of the values that belongs to this array."""
    offsets = array.offsets.to_numpy()
    inside = slice(int(offsets[0]), int(offsets[-1]))
    mask = array.is_null() if array.null_count else None
    return pa.array((offsets - offsets[0]).astype(np.int32)), mask, inside


def _struct(array: pa.StructArray, type_: pa.StructType, leaf: Leaf) -> pa.StructArray:
    valid = array.is_valid() if array.null_count else None
    children = []
    for field in type_:
        place = array.type.get_field_index(field.name)
        child = pa.nulls(len(array)) if place < 0 else array.field(place)
        children.append(_checked(rebuild(child, field.type, leaf), field, valid))
    mask = pc.invert(valid) if valid is not None else None
    if not children:
        return pa.array([None if m else {} for m in (mask or [False] * len(array))], type_)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _checked(array: pa.Array, field: pa.Field, valid: pa.Array | None) -> pa.Array:
    if field.nullable or not array.null_count:
        return array
    missing = array.is_null() if valid is None else pc.and_(array.is_null(), valid)
    if pc.any(missing).as_py():
        raise MissingValue(field.name)
    return array


class MissingValue(pa.ArrowInvalid):  # type: ignore[misc]
    """A null in a column that may not be null."""

    def __init__(self, column: str) -> None:
        super().__init__(f'column "{column}" may not be null')
        self.column = column


def conform(
    rows: pa.RecordBatch | pa.Table, schema: pa.Schema, leaf: Leaf = cast
) -> pa.RecordBatch:
    """`rows` as one batch of exactly `schema`: columns by name, missing ones null.

    Raises pa.ArrowInvalid rather than losing anything, and MissingValue for a null in a column
    that may not be null.
    """
    names = rows.schema.names
    columns = []
    for field in schema:
        place = names.index(field.name) if field.name in names else -1
        column = pa.nulls(rows.num_rows) if place < 0 else rows.column(place)
        columns.append(_checked(rebuild(column, field.type, leaf), field, None))
    if not columns:
        return rows.to_batches()[0].select([]) if isinstance(rows, pa.Table) else rows.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def projected(schema: pa.Schema, read: Read) -> pa.Schema:
    """The columns of `schema` that have to be read: those asked for and those never null."""
    wanted = schema.names if read.columns is None else read.columns
    return pa.schema([f for f in schema if f.name in wanted or not f.nullable])


def conform_each(rows: pa.RecordBatch, schema: pa.Schema, leaf: Leaf = cast) -> Decoded:
    """As `conform`, telling rows that do not fit from those that do."""
    from penstock.sdk.isolate import isolate

    def attempt(start: int, stop: int) -> pa.RecordBatch:
        return conform(rows.slice(start, stop - start), schema, leaf)

    def blame(error: Exception) -> DecodeError:
        return DecodeError(reason(error), code=code_of(error))

    return gather(isolate(rows.num_rows, attempt, blame), schema)


def reason(error: Exception) -> str:
    """What a library says, on one line of bearable length."""
    return shorten(" ".join(str(error).split()))


def code_of(error: Exception) -> str:
    """The code of a value that does not fit its column."""
    return "missing-value" if isinstance(error, MissingValue) else "wrong-type"


def gather(parts: Iterable[tuple[int, int, object]], schema: pa.Schema) -> Decoded:
    """The outcome of `isolate` over payloads, each of which gives one row or an error."""
    batches: list[pa.RecordBatch] = []
    failures: list[Failure] = []
    good: list[np.ndarray] = []
    for start, stop, outcome in parts:
        if isinstance(outcome, Decoded):
            inner = np.arange(stop - start) if outcome.index is None else outcome.index.to_numpy()
            failures += [Failure(start + f.index, f.error) for f in outcome.failures]
            batches.append(outcome.rows)
            good.append(inner + start)
        elif isinstance(outcome, pa.RecordBatch):
            batches.append(outcome)
            good.append(np.arange(start, stop))
        else:
            failures.append(Failure(start, outcome))  # type: ignore[arg-type]
    return Decoded(one_batch(batches, schema), _index(good, failures), failures)


def gather_payloads(parts: Iterable[tuple[int, int, object]]) -> Encoded:
    """The outcome of `isolate` over rows, each of which gives one payload or an error."""
    arrays: list[pa.BinaryArray] = []
    failures: list[Failure] = []
    good: list[np.ndarray] = []
    for start, stop, outcome in parts:
        if isinstance(outcome, pa.Array):
            arrays.append(outcome)
            good.append(np.arange(start, stop))
        else:
            failures.append(Failure(start, outcome))  # type: ignore[arg-type]
    payloads = pa.concat_arrays(arrays) if arrays else pa.array([], pa.binary())
    return Encoded(payloads, _index(good, failures), failures)


def _index(good: Sequence[np.ndarray], failures: Sequence[Failure]) -> pa.Int64Array | None:
    if not failures:
        return None
    return pa.array(np.concatenate(good) if good else [], pa.int64())


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The batches one after the other, as one."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    return pa.concat_batches(batches)


_NAMES = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT",
    pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING",
    pa.binary(): "BINARY", pa.date32(): "DATE", pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.null(): "VOID",
}  # fmt: skip


def sql_name(type_: pa.DataType) -> str:
    """The type as it is written in a `schema:`."""
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if is_list(type_):
        return f"ARRAY<{sql_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{sql_name(type_.key_type)}, {sql_name(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{f.name}: {sql_name(f.type)}' for f in type_)}>"
    return _NAMES.get(type_, str(type_).upper())


def article(name: str) -> str:
    """`an INT`, `a DOUBLE`."""
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def leaves(type_: pa.DataType) -> Iterable[pa.DataType]:
    """The types without parts that `type_` is made of."""
    if pa.types.is_nested(type_):
        for place in range(type_.num_fields):
            yield from leaves(type_.field(place).type)
    else:
        yield type_
