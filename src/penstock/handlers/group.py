"""The handler `group`: a batch for each distinct key.

Input: any columns. Output: the same columns, in a batch for each key in ascending order of the
columns as given; rows keep their order. Null is a key of its own and the last one, NaN is one key.
The group of a batch is that of the input, extended by the columns. Columns that a batch lacks are
ignored. An empty batch has no output. No state. Errors: a type without an order, such as a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import first_values, group_of, with_group
from penstock.handlers.rows import Indexes, column, order_by, take


class GroupBy(Handler):
    """Divides each batch by the values of columns."""

    def __init__(self, by: Sequence[str]) -> None:
        super().__init__()
        self._by = by

    def handle(self, batch: pa.RecordBatch) -> Batches:
        if not batch.num_rows:
            return []
        order = order_by(batch, self._by)
        rows = take(batch, order)
        changes = np.zeros(len(order) - 1, bool)
        for name in self._by:
            if (values := column(rows, name)) is not None:
                changes |= _differences(values)
        starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
        ends = [*starts[1:], len(order)]
        return [self._grouped(batch, order[i:j]) for i, j in zip(starts, ends, strict=True)]

    def _grouped(self, batch: pa.RecordBatch, rows: Indexes) -> pa.RecordBatch:
        part = take(batch, rows)
        values = first_values(part, [*group_of(batch.schema), *self._by])
        return part.replace_schema_metadata(with_group(part.schema, values).metadata)


def _differences(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Returns whether each value but the first differs from the one before it; 0.0 equals -0.0."""
    codes = np.asarray(values.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False))
    differences: npt.NDArray[np.bool_] = codes[1:] != codes[:-1]
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        differences &= numbers[1:] != numbers[:-1]
    return differences
