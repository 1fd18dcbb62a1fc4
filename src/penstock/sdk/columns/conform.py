"""Conversion of rows to a schema, collection of decoded rows, and SQL names of types."""

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
    """Casts an array that is not nested. Raises ArrowInvalid if a value does not fit `type_`."""
    if array.type == type_:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if pa.types.is_decimal(array.type) and pa.types.is_decimal(type_):
        array = _reduce_scale(array, type_.scale)
    return array.cast(type_)


def _reduce_scale(array: pa.Array, scale: int) -> pa.Array:
    """Reduces the scale of decimals in steps of `_STEP` places, to at most `_STEP` above `scale`.

    Arrow divides some numbers, as 2^64 - 1, incorrectly by a divisor of more than 32 bits.
    """
    decimal_type = pa.decimal256 if pa.types.is_decimal256(array.type) else pa.decimal128
    while array.type.scale - scale > _STEP:
        array = array.cast(decimal_type(array.type.precision, array.type.scale - _STEP))
    return array


def rebuild(array: pa.Array, type_: pa.DataType, leaf: Leaf = cast) -> pa.Array:
    """Converts an array to `type_`. `leaf(array, type)` converts arrays that are not nested.

    Fields of structs are matched by name; missing fields are null. Raises the errors of `leaf`,
    and MissingValue for a null in a field that is not nullable.
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
        items = _check_nulls(items, type_.item_field, None)
        return pa.MapArray.from_arrays(offsets, keys, items, type=type_, mask=mask)
    if pa.types.is_list(type_) and is_list(array.type):
        offsets, mask, inside = _offsets(array)
        values = rebuild(array.values[inside], type_.value_type, leaf)
        values = _check_nulls(values, type_.value_field, None)
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=mask)
    return leaf(array, type_)


def is_list(type_: pa.DataType) -> bool:
    """Returns whether the type is a list with 32-bit or 64-bit offsets."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _offsets(array: pa.Array) -> tuple[pa.Array, pa.Array | None, slice]:
    """Returns offsets from 0, the mask of nulls, and the range of the values of this array."""
    offsets = array.offsets.to_numpy()
    inside = slice(int(offsets[0]), int(offsets[-1]))
    mask = array.is_null() if array.null_count else None
    return pa.array((offsets - offsets[0]).astype(np.int32)), mask, inside


def _struct(array: pa.StructArray, type_: pa.StructType, leaf: Leaf) -> pa.StructArray:
    valid = array.is_valid() if array.null_count else None
    children = []
    for field in type_:
        index = array.type.get_field_index(field.name)
        child = pa.nulls(len(array)) if index < 0 else array.field(index)
        children.append(_check_nulls(rebuild(child, field.type, leaf), field, valid))
    mask = pc.invert(valid) if valid is not None else None
    if not children:
        return pa.array(
            [None if is_null else {} for is_null in (mask or [False] * len(array))], type_
        )
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _check_nulls(array: pa.Array, field: pa.Field, valid: pa.Array | None) -> pa.Array:
    if field.nullable or not array.null_count:
        return array
    missing = array.is_null() if valid is None else pc.and_(array.is_null(), valid)
    if pc.any(missing).as_py():
        raise MissingValue(field.name)
    return array


class MissingValue(pa.ArrowInvalid):  # type: ignore[misc]
    """A null in a column that is not nullable."""

    def __init__(self, column: str) -> None:
        super().__init__(f'column "{column}" is null; expected a value')
        self.column = column


def conform(
    rows: pa.RecordBatch | pa.Table, schema: pa.Schema, leaf: Leaf = cast
) -> pa.RecordBatch:
    """Converts rows to one batch of `schema`.

    Columns are matched by name; missing columns are null. Raises pa.ArrowInvalid if a
    value does not fit its column, and MissingValue for a null in a column that is not nullable.
    """
    names = rows.schema.names
    columns = []
    for field in schema:
        index = names.index(field.name) if field.name in names else -1
        column = pa.nulls(rows.num_rows) if index < 0 else rows.column(index)
        columns.append(_check_nulls(rebuild(column, field.type, leaf), field, None))
    if not columns:
        return rows.to_batches()[0].select([]) if isinstance(rows, pa.Table) else rows.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def project_schema(schema: pa.Schema, read: Read) -> pa.Schema:
    """Returns the columns of `schema` to read: requested columns, and columns without nulls."""
    requested = schema.names if read.columns is None else read.columns
    return pa.schema([field for field in schema if field.name in requested or not field.nullable])


def conform_each(rows: pa.RecordBatch, schema: pa.Schema, leaf: Leaf = cast) -> Decoded:
    """Converts rows as `conform` does, with a failure for each row that does not fit."""
    from penstock.sdk.isolate import isolate

    def attempt(start: int, stop: int) -> pa.RecordBatch:
        return conform(rows.slice(start, stop - start), schema, leaf)

    def convert_error(error: Exception) -> DecodeError:
        return DecodeError(error_text(error), code=error_code(error))

    return collect_decoded(isolate(rows.num_rows, attempt, convert_error), schema)


def error_text(error: Exception) -> str:
    """Returns the message of an exception on one line, shortened."""
    return shorten(" ".join(str(error).split()))


def error_code(error: Exception) -> str:
    """Returns the error code of a value that does not fit its column."""
    return "missing-value" if isinstance(error, MissingValue) else "wrong-type"


def collect_decoded(parts: Iterable[tuple[int, int, object]], schema: pa.Schema) -> Decoded:
    """Collects the outcomes of `isolate` over payloads, one row or error each."""
    batches: list[pa.RecordBatch] = []
    failures: list[Failure] = []
    indexes: list[np.ndarray] = []
    for start, stop, outcome in parts:
        if isinstance(outcome, Decoded):
            decoded = np.arange(stop - start) if outcome.index is None else outcome.index.to_numpy()
            failures += [
                Failure(start + failure.index, failure.error) for failure in outcome.failures
            ]
            batches.append(outcome.rows)
            indexes.append(decoded + start)
        elif isinstance(outcome, pa.RecordBatch):
            batches.append(outcome)
            indexes.append(np.arange(start, stop))
        else:
            failures.append(Failure(start, outcome))  # type: ignore[arg-type]
    return Decoded(concat_batches(batches, schema), _concat_indexes(indexes, failures), failures)


def collect_encoded(parts: Iterable[tuple[int, int, object]]) -> Encoded:
    """Collects the outcomes of `isolate` over rows, one payload or error each."""
    arrays: list[pa.BinaryArray] = []
    failures: list[Failure] = []
    indexes: list[np.ndarray] = []
    for start, stop, outcome in parts:
        if isinstance(outcome, pa.Array):
            arrays.append(outcome)
            indexes.append(np.arange(start, stop))
        else:
            failures.append(Failure(start, outcome))  # type: ignore[arg-type]
    payloads = pa.concat_arrays(arrays) if arrays else pa.array([], pa.binary())
    return Encoded(payloads, _concat_indexes(indexes, failures), failures)


def _concat_indexes(
    indexes: Sequence[np.ndarray], failures: Sequence[Failure]
) -> pa.Int64Array | None:
    if not failures:
        return None
    return pa.array(np.concatenate(indexes) if indexes else [], pa.int64())


def concat_batches(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Concatenates batches of `schema`."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_arrays(
            [pa.array([], field.type) for field in schema], schema=schema
        )
    return pa.concat_batches(batches)


_NAMES = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT",
    pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING",
    pa.binary(): "BINARY", pa.date32(): "DATE", pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.null(): "VOID",
}  # fmt: skip


def sql_name(type_: pa.DataType) -> str:
    """Returns the name of a type in Spark SQL."""
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if is_list(type_):
        return f"ARRAY<{sql_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{sql_name(type_.key_type)}, {sql_name(type_.item_type)}>"
    if is_variant(type_):
        return "VARIANT"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_name(field.type)}' for field in type_)}>"
    return _NAMES.get(type_, str(type_).upper())


def is_variant(type_: pa.DataType) -> bool:
    """Returns whether a type is that of Spark for VARIANT: a struct with a marked field."""
    return pa.types.is_struct(type_) and any(
        (field.metadata or {}).get(b"variant") == b"true" for field in type_
    )


def with_article(name: str) -> str:
    """Returns a name with its indefinite article: `an INT`, `a DOUBLE`."""
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def leaf_types(type_: pa.DataType) -> Iterable[pa.DataType]:
    """Yields the types within `type_` that are not nested."""
    if pa.types.is_nested(type_):
        for index in range(type_.num_fields):
            yield from leaf_types(type_.field(index).type)
    else:
        yield type_
