"""Values of rows as parameters of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import Rejected
from penstock.sdk.columns.display import json_of

Convert = Callable[[pa.Array, pa.Field], Sequence[Any] | None]


def parameters_of(rows: pa.RecordBatch, convert: Convert) -> Iterator[tuple[Any, ...]]:
    """Yields the values of each row. Nested values are JSON text.

    `convert` returns the values of a column of which the client library needs another form, or
    None.
    """
    columns = [
        _values(column, field, convert)
        for column, field in zip(rows.columns, rows.schema, strict=True)
    ]
    return zip(*columns, strict=True)


def _values(column: pa.Array, field: pa.Field, convert: Convert) -> Sequence[Any]:
    if pa.types.is_nested(field.type):
        return [json_of(value, field) if value.is_valid else None for value in column]
    converted = convert(column, field)
    return column.to_pylist() if converted is None else converted


def check_second_digits(column: pa.TimestampArray, name: str, digits: int) -> None:
    """Raises Rejected if a time has more digits of a fraction of a second than its column."""
    unit = 10 ** (6 - digits)
    if (
        unit > 1
        and pc.any(pc.not_equal(column, pc.floor_temporal(column, unit, "microsecond"))).as_py()
    ):
        raise Rejected(
            f'column "{name}" of the table stores {digits} digits of a fraction of a second, and '
            "the time has more",
            code="wrong-type",
            hint="Change the type of the column, or truncate the time with date_trunc.",
        )
