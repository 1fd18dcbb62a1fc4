"""Conversion of rows to a schema, and collection of decoded rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError
from penstock.core.text import shorten
from penstock.sdk.columns.conversion import cast, is_number
from penstock.sdk.columns.names import AmbiguousName, find_name
from penstock.sdk.columns.plain_arrays import from_list_view, is_list_view, storage_values
from penstock.sdk.columns.scalar_parsing import TRUNCATE_HINT, UNIT_HINT
from penstock.sdk.columns.type_names import is_list, sql_name, with_article
from penstock.sdk.record import Decoded, Encoded, Failure, Read

Leaf = Callable[[pa.Array, pa.DataType], pa.Array]
_NANOSECONDS = r":[0-9]{2}\.[0-9]{7}"


def rebuild(array: pa.Array, type_: pa.DataType, leaf: Leaf = cast) -> pa.Array:
    """Converts an array to `type_`. `leaf(array, type)` converts arrays that are not nested.

    Fields of structs are matched by name (see `names`); missing fields are null. Raises WrongType
    for a value that `leaf` rejects with an error of Arrow, MissingValue for a null in a field that
    is not nullable, and AmbiguousName.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = storage_values(array, type_)
    if is_list_view(array.type):
        array = from_list_view(array)
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if pa.types.is_null(array.type) or not pa.types.is_nested(type_):
        return _convert(array, type_, leaf)
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
    return _convert(array, type_, leaf)


def _convert(array: pa.Array, type_: pa.DataType, leaf: Leaf) -> pa.Array:
    try:
        return leaf(array, type_)
    except WrongType:
        raise
    except pa.ArrowException as error:
        raise WrongType(array, type_, leaf) from error


def _offsets(array: pa.Array) -> tuple[pa.Array, pa.Array | None, slice]:
    """Returns offsets from 0, the mask of nulls, and the range of the values of this array."""
    offsets = array.offsets.to_numpy()
    inside = slice(int(offsets[0]), int(offsets[-1]))
    mask = array.is_null() if array.null_count else None
    return pa.array((offsets - offsets[0]).astype(np.int32)), mask, inside


def _struct(array: pa.StructArray, type_: pa.StructType, leaf: Leaf) -> pa.StructArray:
    valid = array.is_valid() if array.null_count else None
    names = [field.name for field in array.type]
    # Values below a null are arbitrary; `flatten` makes them null.
    found = array.flatten() if valid is not None else [*map(array.field, range(len(names)))]
    children = []
    for field in type_:
        index = find_name(field.name, names)
        child = pa.nulls(len(array)) if index < 0 else found[index]
        children.append(_convert_field(child, field, leaf, valid))
    mask = pc.invert(valid) if valid is not None else None
    if not children:
        return pa.array(
            [None if is_null else {} for is_null in (mask or [False] * len(array))], type_
        )
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _convert_field(
    array: pa.Array, field: pa.Field, leaf: Leaf, valid: pa.Array | None = None
) -> pa.Array:
    try:
        converted = rebuild(array, field.type, leaf)
    except WrongType as error:
        raise error.within(field.name) from None
    return _check_nulls(converted, field, valid)


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


class WrongType(pa.ArrowInvalid):  # type: ignore[misc]
    """A value that cannot be converted to the type of its column. The message is made on demand."""

    def __init__(self, array: pa.Array, type_: pa.DataType, leaf: Leaf) -> None:
        self.array, self.type, self.leaf = array, type_, leaf
        self.path: list[str] = []

    def within(self, name: str) -> WrongType:
        """Returns the error with the name of the column or of the field."""
        self.path.insert(0, name)
        return self

    def __str__(self) -> str:
        column = f'column "{".".join(self.path)}": ' if self.path else ""
        index = self.index
        text = "the value" if index is None else shorten(self.value_text(index), 100)
        return f"{column}{text} ({self.source}) is not {with_article(sql_name(self.type))}"

    @property
    def index(self) -> int | None:
        """The index of the first value that cannot be converted."""
        if len(self.array) == 1:
            return 0
        for index in range(len(self.array)):
            try:
                self.leaf(self.array.slice(index, 1), self.type)
            except Exception:
                return index
        return None

    def value_text(self, index: int) -> str:
        """Returns the text of a value of the array."""
        return _text(self.array[index])

    @property
    def source(self) -> str:
        """The name of the type of the values."""
        type_ = self.array.type
        is_fine = pa.types.is_timestamp(type_) and type_.unit == "ns"
        return f"{sql_name(type_)} of nanoseconds" if is_fine else sql_name(type_)

    @property
    def hint(self) -> str | None:
        """The option of formats that converts the value, if any."""
        source = self.array.type
        if not pa.types.is_timestamp(self.type):
            return None
        if is_number(source):
            return UNIT_HINT
        if pa.types.is_string(source):
            is_fine = pc.any(pc.match_substring_regex(self.array, _NANOSECONDS)).as_py()
        else:
            is_fine = pa.types.is_timestamp(source) and source.unit == "ns"
        return TRUNCATE_HINT if is_fine else None


def _text(value: pa.Scalar) -> str:
    if pa.types.is_string(value.type):
        return json.dumps(value.as_py(), ensure_ascii=False)
    try:
        return str(value.cast(pa.string()))
    except pa.ArrowException:
        return str(value.as_py())


def conform(
    rows: pa.RecordBatch | pa.Table, schema: pa.Schema, leaf: Leaf = cast
) -> pa.RecordBatch:
    """Converts rows to one batch of `schema`.

    Columns are matched by name (see `names`); missing columns are null. Raises WrongType if a value
    does not fit its column, MissingValue for a null in a column that is not nullable, and
    AmbiguousName.
    """
    names = rows.schema.names
    columns = []
    for field in schema:
        index = find_name(field.name, names)
        column = pa.nulls(rows.num_rows) if index < 0 else rows.column(index)
        columns.append(_convert_field(column, field, leaf))
    if not columns:
        return rows.to_batches()[0].select([]) if isinstance(rows, pa.Table) else rows.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def project_schema(schema: pa.Schema, read: Read) -> pa.Schema:
    """Returns the columns of `schema` to read: requested columns, and columns without nulls."""
    requested = schema.names if read.columns is None else read.columns
    return pa.schema([field for field in schema if field.name in requested or not field.nullable])


def conform_each(rows: pa.RecordBatch, schema: pa.Schema, leaf: Leaf = cast) -> Decoded:
    """Converts rows as `conform` does, with a failure for each row that does not fit."""
    from penstock.sdk.bisect_failures import bisect_failures

    def attempt(start: int, stop: int) -> pa.RecordBatch:
        return conform(rows.slice(start, stop - start), schema, leaf)

    return collect_decoded(bisect_failures(rows.num_rows, attempt, decode_error), schema)


def decode_error(error: Exception) -> DecodeError:
    """Returns the error of a record with a value that does not fit its column."""
    hint = error.hint if isinstance(error, WrongType) else None
    return DecodeError(error_text(error), code=error_code(error), hint=hint)


def error_text(error: Exception) -> str:
    """Returns the message of an exception on one line, shortened."""
    return shorten(" ".join(str(error).split()))


def error_code(error: Exception) -> str:
    """Returns the error code of a value that does not fit its column."""
    if isinstance(error, AmbiguousName):
        return "ambiguous-column"
    return "missing-value" if isinstance(error, MissingValue) else "wrong-type"


def collect_decoded(parts: Iterable[tuple[int, int, object]], schema: pa.Schema) -> Decoded:
    """Collects the outcomes of `bisect_failures` over payloads, one row or error each."""
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
    """Collects the outcomes of `bisect_failures` over rows, one payload or error each."""
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


def leaf_types(type_: pa.DataType) -> Iterable[pa.DataType]:
    """Yields the types within `type_` that are not nested."""
    if pa.types.is_nested(type_):
        for index in range(type_.num_fields):
            yield from leaf_types(type_.field(index).type)
    else:
        yield type_
