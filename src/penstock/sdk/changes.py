"""Row operations: inserts, updates and deletes that travel beside the rows of a batch."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc


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


OPERATIONS = pa.array([str(operation) for operation in Operation], pa.string())
"""The texts of all operations."""


def known_operations(values: pa.Array) -> pa.BooleanArray:
    """Returns for each value whether it is the text of an operation; false for null."""
    return pc.is_in(values.cast(pa.string()), value_set=OPERATIONS)


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
