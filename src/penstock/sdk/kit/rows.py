"""Rows written by hand (dicts in a pipeline or test file) as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError, UserError

Row = Mapping[str, Any]


def infer_rows(rows: Sequence[Row]) -> pa.Schema:
    """The columns of `rows` in order of appearance; times are UTC. Raises UserError."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.schema([(name, _infer(name, [row.get(name) for row in rows])) for name in names])


def _infer(name: str, values: list[Any]) -> pa.DataType:
    try:
        found = pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError(
            f'column "{name}" has values of different types',
            code="mixed-types",
            detail=str(error),
            hint="write them alike, or declare the column in schema",
        ) from error
    if pa.types.is_null(found):
        return pa.string()
    if pa.types.is_timestamp(found):
        return pa.timestamp("us", tz="UTC")
    return found


def batch_of(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """`rows` as columns of exactly `schema`; missing values are null. Raises DecodeError."""
    columns = [column([row.get(field.name) for row in rows], field) for field in schema]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.record_batch(columns, schema=schema)


def column(values: Iterable[Any], field: pa.Field) -> pa.Array:
    """`values` as a field's type: as they are, or cast (an ISO text to a time, say)."""
    values = list(values)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
        pass
    try:
        return _cast(pa.array(values), field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DecodeError(
            f'column "{field.name}" is not {field.type}', detail=str(error)
        ) from error


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(target) and target.tz and pa.types.is_string(array.type):
        try:
            return array.cast(target)
        except pa.ArrowInvalid:
            array = array.cast(pa.timestamp(target.unit))
    return array.cast(target)
