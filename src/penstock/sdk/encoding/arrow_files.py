"""Files of Arrow batches, and conversion of their types to those of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, Permanent, PlanError
from penstock.core.text import nearest
from penstock.sdk.columns.conform import conform, conform_each, error_text, is_list, project_schema
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.names import AmbiguousName, match_fields
from penstock.sdk.record import Read

UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, MemoryError, OverflowError)
"""Errors of PyArrow for a corrupt file. Corrupt text is a ValueError, a corrupt length a
MemoryError."""
_SPARK_TYPES = frozenset({
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.string(), pa.binary(), pa.date32(),
})  # fmt: skip


def read_batches(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, origin: str, read: Read,
    conversion: Conversion = cast,
) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:  # fmt: skip
    """Yields rows of exactly `schema` and their numbers from 1.

    Rejects rows that cannot be converted. After a DecodeError of `batches` the remaining rows are
    rejected as one record without payload, at the position before the error.
    """
    needed = project_schema(schema, read)
    before = 0
    while True:
        try:
            batch = next(batches, None)
        except DecodeError as error:
            read.reject(None, origin, before, error)
            return
        if batch is None:
            return
        decoded = conform_each(batch, needed, conversion)
        for failure in decoded.failures:
            read.reject(None, origin, before + failure[0] + 1, failure.error)
        count = batch.num_rows
        indexes = np.arange(count) if decoded[1] is None else decoded[1].to_numpy()
        if decoded.rows.num_rows:
            yield conform(decoded.rows, schema), pa.array(indexes + before + 1, pa.int64())
        before += count


def check_file_columns(columns: pa.Schema, schema: pa.Schema, origin: str) -> None:
    """Raises Permanent for a file with none of the columns of `schema`, or with several for one."""
    try:
        matches = match_fields(columns, schema)
    except AmbiguousName as error:
        raise Permanent(
            f"cannot read {origin}: {error}",
            code="ambiguous-column",
            hint="Declare the column as one of the names is written.",
        ) from error
    if matches or not len(schema):
        return
    names = columns.names
    similar = next((name for column in schema.names if (name := nearest(column, names))), None)
    raise Permanent(
        f"cannot read {origin}: expected one of the columns {_listed(schema.names)}, found "
        f"{_listed(names)}",
        code="wrong-columns",
        hint=f'did you mean "{similar}"?' if similar else "Declare the columns of the file.",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names[:20]) or "none"


def spark_compatible(schema: pa.Schema) -> pa.Schema:
    """Converts a schema to types that Spark supports. Raises PlanError at another type."""
    fields = [pa.field(field.name, _spark_type(field.type), field.nullable) for field in schema]
    for field in fields:
        unsupported = _unsupported_type(field.type)
        if unsupported is not None:
            alternative = "" if pa.types.is_nested(unsupported) else f" or with {field.name} STRING"
            raise PlanError(
                f'column "{field.name}" is {unsupported}, which has no counterpart in Spark',
                code="unsupported-type",
                hint=f"Declare the columns in schema, without {field.name}{alternative}.",
            )
    return pa.schema(fields)


def _unsupported_type(type_: pa.DataType) -> pa.DataType | None:
    """Returns the first type within a type that Spark does not support."""
    if pa.types.is_struct(type_) or pa.types.is_list(type_) or pa.types.is_map(type_):
        inner = (_unsupported_type(type_.field(index).type) for index in range(type_.num_fields))
        return next((found for found in inner if found is not None), None)
    is_supported = type_ in _SPARK_TYPES or pa.types.is_decimal128(type_)
    return None if is_supported or pa.types.is_timestamp(type_) else type_


def unsupported_type(error: pa.ArrowNotImplementedError) -> PlanError:
    """Returns the error of a file with a type that the library does not read."""
    return PlanError(
        f"a type of the file is not supported: {error_text(error)}",
        code="unsupported-type",
        hint="Declare the columns in schema, without those of this type.",
    )


def _spark_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct(
            [pa.field(field.name, _spark_type(field.type), field.nullable) for field in type_]
        )
    if is_list(type_) or pa.types.is_fixed_size_list(type_):
        nullable = type_.value_field.nullable
        return pa.list_(pa.field("element", _spark_type(type_.value_type), nullable))
    if pa.types.is_map(type_):
        item = pa.field("value", _spark_type(type_.item_type), type_.item_field.nullable)
        return pa.map_(_spark_type(type_.key_type), item)
    if pa.types.is_dictionary(type_):
        return _spark_type(type_.value_type)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    return _simple(type_)


def _simple(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    wider = {
        pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0), pa.float16(): pa.float32(), pa.date64(): pa.date32(),
        pa.large_string(): pa.string(), pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(), pa.null(): pa.string(),
    }  # fmt: skip
    return pa.binary() if pa.types.is_fixed_size_binary(type_) else wider.get(type_, type_)
