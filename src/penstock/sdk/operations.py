"""Row operations: inserts, updates and deletes beside the rows of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import Rejected


class Operation(StrEnum):
    """The operation of a row. The value is its text in an operation column."""

    INSERT = "i"
    """The row is new."""
    UPDATE_BEFORE = "ub"
    """The row as it was before an update. The row after the update follows."""
    UPDATE = "u"
    """The row as it is after an update."""
    DELETE = "d"
    """The row is removed."""


OPERATION_COLUMN = "_op"
"""The default name of an operation column."""


@dataclass(frozen=True)
class Changes:
    """Facts of rows that are changes."""

    column: str
    """The operation column."""
    complete: bool
    """Whether each update and delete has the whole row before, as the row `ub` or as its own."""


@cache
def operations() -> pa.StringArray:
    """Returns the texts of all operations. Not a constant: PyArrow's first array imports pandas."""
    return pa.array([str(operation) for operation in Operation], pa.string())


def known_operations(values: pa.Array) -> pa.BooleanArray:
    """Returns for each value whether it is the text of an operation; false for null."""
    return pc.is_in(values.cast(pa.string()), value_set=operations())


def unknown_operations(
    rows: pa.RecordBatch, column: str
) -> tuple[pa.BooleanArray, list[tuple[int, Rejected]]]:
    """Returns for each row whether its operation is known, and the errors of the other rows."""
    known = known_operations(rows.column(column))
    errors = [
        (
            index,
            Rejected(
                f'expected an operation (i, ub, u or d) in column "{column}", '
                f"found {rows.column(column)[index].as_py()!r}",
                code="unknown-operation",
            ),
        )
        for index in pc.indices_nonzero(pc.invert(known)).to_pylist()
    ]
    return known, errors


def split_operations(
    rows: pa.RecordBatch, column: str | None
) -> tuple[pa.RecordBatch, pa.StringArray | None]:
    """Returns the rows without their operation column, and its values.

    The values are None for inserts only: if `column` is None or not among the columns.
    """
    if column is None or column not in rows.schema.names:
        return rows, None
    operations = rows.column(column).cast(pa.string())
    return rows.drop_columns([column]), operations


def add_operation(columns: pa.Schema, name: str) -> pa.Schema:
    """Returns the columns of changes: nullable, and with an operation column.

    The row of a delete may have nulls in all columns but its key.
    """
    fields = [field.with_nullable(True) for field in columns]
    if name not in columns.names:
        fields.append(pa.field(name, pa.string()))
    return pa.schema(fields, columns.metadata)


def whole_updates(
    batches: Iterable[pa.RecordBatch], column: str | None
) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches that do not end between the two rows of an update."""
    held: pa.RecordBatch | None = None
    for rows in batches:
        if column is None or column not in rows.schema.names or not rows.num_rows:
            yield rows
            continue
        if held is not None:
            rows = pa.concat_batches([held, rows])
            held = None
        if rows.column(column)[-1].as_py() == Operation.UPDATE_BEFORE:
            held, rows = rows.slice(rows.num_rows - 1), rows.slice(0, rows.num_rows - 1)
        yield rows
    if held is not None:
        yield held
