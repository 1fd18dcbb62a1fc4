"""Formats whose payload is one column's value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, EncodeError, PlanError
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import without_nulls
from penstock.sdk.kit.columns import conform, gather, sql_name
from penstock.sdk.record import Decoded, Encoded, Failure


def value_column(schema: pa.Schema, format_: str, types: tuple[pa.DataType, ...]) -> pa.Field:
    """The one column of `schema`. Raises PlanError unless it is one, of one of `types`."""
    names = " or ".join(map(sql_name, types))
    if len(schema) != 1:
        message = f"the format {format_} has one column, of type {names}; here are {len(schema)}"
        raise PlanError(message, code="one-column")
    if schema.field(0).type not in types:
        found = sql_name(schema.field(0).type)
        message = f'the format {format_} has {names}; column "{schema.field(0).name}" is {found}'
        raise PlanError(message, code="unsupported-type")
    return schema.field(0)


def decode_values(payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
    """Each payload as the value of the one column of `schema`; text must be UTF-8.

    A payload that is null is a null, or has failed where the column may not be null.
    """

    def attempt(some: pa.BinaryArray) -> pa.RecordBatch:
        return conform(pa.record_batch([some], names=schema.names), schema)

    def decode(some: pa.BinaryArray) -> Decoded:
        parts = isolate(len(some), lambda a, b: attempt(some.slice(a, b - a)), _not_text)
        return gather(parts, schema)

    nullable = schema.field(0).nullable
    return decode(payloads) if nullable else without_nulls(payloads, decode)


def encode_values(values: pa.Array) -> Encoded:
    """Each value as a payload; a null has none."""
    payloads = values.cast(pa.binary())
    if not values.null_count:
        return Encoded(payloads, None, [])
    error = EncodeError("the value is null", code="no-value")
    present = np.flatnonzero(np.asarray(values.is_valid()))
    absent = np.flatnonzero(np.asarray(values.is_null()))
    failures = [Failure(int(i), error) for i in absent]
    return Encoded(payloads.drop_null(), pa.array(present, pa.int64()), failures)


def chosen(rows: pa.RecordBatch, column: str | None, format_: str) -> pa.Array:
    """The column that is written: the named one, or the only one."""
    names = rows.schema.names
    if column is not None and column not in names:
        raise PlanError(f'there is no column "{column}"', code="unknown-column")
    field = rows.schema.field(column) if column else None
    schema = pa.schema([field]) if field is not None else rows.schema
    name = value_column(schema, format_, (pa.binary(), pa.string())).name
    return rows.column(name)


def _not_text(error: Exception) -> DecodeError:
    return DecodeError("not UTF-8", code="not-utf8")
