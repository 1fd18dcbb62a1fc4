"""Files of Arrow batches, and conversion of their types to those of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from penstock.core.errors import DecodeError, Permanent, PlanError
from penstock.core.text import nearest
from penstock.sdk.columns.conform import conform, conform_each, error_text, project_schema
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.names import AmbiguousName, match_fields
from penstock.sdk.encoding.arrow_types import storage_type, unwrapping
from penstock.sdk.encoding.arrow_validity import split_invalid
from penstock.sdk.record import Read

UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, MemoryError, OverflowError)
"""Errors of PyArrow for a corrupt file. Corrupt text is a ValueError, a corrupt length a
MemoryError."""

_SPARK_TYPES = frozenset({
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.string(), pa.binary(), pa.date32(),
})  # fmt: skip


class Unreadable(NamedTuple):
    """Consecutive rows of a file that cannot be read. They are rejected as one record."""

    num_rows: int
    error: DecodeError


def read_batches(
    parts: Iterable[pa.RecordBatch | Unreadable],
    schema: pa.Schema,
    origin: str,
    read: Read,
    conversion: Conversion = cast,
) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
    """Yields rows of exactly `schema` and their numbers from 1.

    Rejects rows that cannot be converted, and unreadable rows as one record at their first row.
    After a DecodeError of `parts` the remaining rows are rejected as one record without payload, at
    the position before the error.
    """
    needed = project_schema(schema, read)
    before = 0
    pending = iter(parts)
    while True:
        try:
            part = next(pending, None)
        except DecodeError as error:
            read.reject(None, origin, before, error)
            return
        if part is None:
            return
        if isinstance(part, Unreadable):
            read.reject(None, origin, before + 1, part.error)
        else:
            yield from _convert(part, needed, schema, origin, before, read, conversion)
        before += part.num_rows


def _convert(
    batch: pa.RecordBatch,
    needed: pa.Schema,
    schema: pa.Schema,
    origin: str,
    before: int,
    read: Read,
    conversion: Conversion,
) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
    """Yields the valid rows of a batch, whose first row has the number `before + 1`."""
    try:
        valid, indexes, failures = split_invalid(batch)
    except DecodeError as error:
        read.reject(None, origin, before + 1, error)
        return
    decoded = conform_each(valid, needed, unwrapping(conversion))
    failed = [(int(indexes[index]), error) for index, error in decoded.failures]
    for index, failure in sorted([*failures, *failed], key=lambda item: item[0]):
        read.reject(None, origin, before + index + 1, failure)
    if decoded.index is not None:
        indexes = indexes[decoded.index.to_numpy()]
    if decoded.rows.num_rows:
        yield conform(decoded.rows, schema), pa.array(indexes + before + 1, pa.int64())


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
    fields = [pa.field(field.name, storage_type(field.type), field.nullable) for field in schema]
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
    is_decimal = pa.types.is_decimal128(type_) and type_.scale >= 0
    is_supported = type_ in _SPARK_TYPES or is_decimal or pa.types.is_timestamp(type_)
    return None if is_supported else type_


def unsupported_type(error: pa.ArrowNotImplementedError) -> PlanError:
    """Returns the error of a file with a type that the library does not read."""
    return PlanError(
        f"a type of the file is not supported: {error_text(error)}",
        code="unsupported-type",
        hint="Declare the columns in schema, without those of this type.",
    )
