"""Values of rows as parameters of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
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


def check_second_digits(times: pa.Array, name: str, digits: int) -> None:
    """Raises Rejected if a time has more digits of a second than its column `name` stores."""
    unit = 10 ** (6 - digits)
    floor = pc.floor_temporal(times, unit, "microsecond") if unit > 1 else times
    if unit > 1 and pc.any(pc.not_equal(times, floor)).as_py():
        raise Rejected(
            f'column "{name}" of the table stores {digits} digits of a fraction of a second, and '
            "the time has more",
            code="wrong-type",
            hint="Change the type of the column, or truncate the time with date_trunc.",
        )


def time_text(time: pa.Scalar) -> str:
    """Returns the text of a date or a timestamp of any year."""
    is_date = pa.types.is_date(time.type)
    number = int(time.value)
    last = 2**31 - 1 if is_date else 2**63 - 1
    if abs(number) == last:
        return "infinity" if number > 0 else "-infinity"
    return str(np.datetime64(number, "D" if is_date else time.type.unit))


def value_of(scalar: pa.Scalar) -> object:
    """Returns a value for a dead letter. Times that Python does not have are text."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        pass
    if pa.types.is_struct(scalar.type):
        return {name: value_of(scalar[name]) for name in scalar.type.names}
    if pa.types.is_nested(scalar.type):
        return [value_of(item) for item in getattr(scalar, "values", None) or [scalar.value]]
    return time_text(scalar)
