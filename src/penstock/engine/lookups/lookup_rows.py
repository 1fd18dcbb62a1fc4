"""Rows of a lookup table: the last row of each key, without deleted rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk import Operation

_NUMBER = "_penstock_number"
_REMOVED = [str(Operation.DELETE), str(Operation.UPDATE_BEFORE)]


def apply_changes(
    rows: pa.Table, changes: pa.Table, key: Sequence[str], operation: str | None
) -> pa.Table:
    """Returns the rows of a table after changes, in their order.

    A row replaces an earlier row with the same key, and a row with the operation of a delete
    removes it. Rows without a key are only added. `operation` is a column of the changes.
    """
    removes = pa.repeat(pa.scalar(False), len(rows) + len(changes))
    if operation is not None:
        values = changes.column(operation).cast(pa.string())
        removed = pc.is_in(values, value_set=pa.array(_REMOVED)).combine_chunks()
        removes = pa.concat_arrays([pa.repeat(pa.scalar(False), len(rows)), removed])
        changes = changes.drop_columns([operation])
    table = pa.concat_tables([rows, changes.cast(rows.schema)])
    kept = pc.invert(removes)
    if key:
        kept = pc.and_(kept, _is_last(table, key))
    return table.filter(kept)


def _is_last(table: pa.Table, key: Sequence[str]) -> pa.BooleanArray:
    """Returns for each row whether no later row has the same key."""
    numbers = pa.array(range(len(table)), pa.int64())
    keys = table.select(list(key)).append_column(_NUMBER, numbers)
    last = keys.group_by(list(key)).aggregate([(_NUMBER, "max")]).column(f"{_NUMBER}_max")
    return pc.is_in(numbers, value_set=last.combine_chunks())
