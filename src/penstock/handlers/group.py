"""The handler `group`: a batch for each distinct key.

Input: any columns. Output: the same columns, in a batch for each key in ascending order of the
columns as given; rows keep their order. Null is a key of its own and the last one, NaN is one key.
The group of a batch is that of the input, extended by the columns. Columns that a batch lacks are
ignored. An empty batch has no output. No state. Errors: a type without an order, such as a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import group_of, with_group_of
from penstock.handlers.rows import changed_rows, order_by, take


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
        starts = [0, *changed_rows(rows, self._by), rows.num_rows]
        names = [*group_of(batch.schema), *self._by]
        parts = (rows.slice(start, end - start) for start, end in pairwise(starts))
        return [with_group_of(part, names) for part in parts]
