"""Formats whose payload is the value of a single column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, EncodeError, PlanError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.binary_arrays import decode_non_null
from penstock.sdk.columns.conform import collect_decoded, conform
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.record import Decoded, Encoded, Failure


def value_column(schema: pa.Schema, format_: str, types: tuple[pa.DataType, ...]) -> pa.Field:
    """Returns the only column of `schema`, which must be of one of `types`. Raises PlanError."""
    names = " or ".join(map(sql_name, types))
    if len(schema) != 1:
        message = f"the format {format_} expects one column of type {names}, found {len(schema)}"
        raise PlanError(message, code="one-column")
    if schema.field(0).type not in types:
        actual = sql_name(schema.field(0).type)
        message = (
            f'the format {format_} expects {names}, column "{schema.field(0).name}" is {actual}'
        )
        raise PlanError(message, code="unsupported-type")
    return schema.field(0)


def decode_values(payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
    """Decodes payloads as values of the only column of `schema`. Text must be UTF-8.

    A null payload is a null value, or a failure if the column is not nullable.
    """

    def attempt(part: pa.BinaryArray) -> pa.RecordBatch:
        return conform(pa.record_batch([part], names=schema.names), schema)

    def decode(present: pa.BinaryArray) -> Decoded:
        parts = bisect_failures(
            len(present), lambda start, stop: attempt(present.slice(start, stop - start)), _not_utf8
        )
        return collect_decoded(parts, schema)

    nullable = schema.field(0).nullable
    return decode(payloads) if nullable else decode_non_null(payloads, decode)


def encode_values(values: pa.Array) -> Encoded:
    """Encodes values as payloads. A null is a failure."""
    payloads = values.cast(pa.binary())
    if not values.null_count:
        return Encoded(payloads, None, [])
    error = EncodeError("the value is null", code="no-value")
    present = np.flatnonzero(np.asarray(values.is_valid()))
    absent = np.flatnonzero(np.asarray(values.is_null()))
    failures = [Failure(int(index), error) for index in absent]
    return Encoded(payloads.drop_null(), pa.array(present, pa.int64()), failures)


def select_column(rows: pa.RecordBatch, column: str | None, format_: str) -> pa.Array:
    """Returns the named column, or the only one. Raises PlanError."""
    names = rows.schema.names
    if column is not None and column not in names:
        raise PlanError(f'there is no column "{column}"', code="unknown-column")
    field = rows.schema.field(column) if column else None
    schema = pa.schema([field]) if field is not None else rows.schema
    name = value_column(schema, format_, (pa.binary(), pa.string())).name
    return rows.column(name)


def _not_utf8(error: Exception) -> DecodeError:
    return DecodeError("not UTF-8", code="not-utf8")
