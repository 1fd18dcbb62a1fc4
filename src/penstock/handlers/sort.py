"""The handler `sort`: the rows of each batch in the order of columns.

Input: any columns. Output: the same columns and rows. The order is ascending by the first column,
then by the next; equal rows keep their order. NaN is after numbers, null is last. Columns that a
batch lacks are ignored. No state. Errors: a type without an order, such as a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.handlers.handler import Batches, Handler
from penstock.handlers.rows import order_by, take


class Sort(Handler):
    """Sorts the rows of each batch."""

    def __init__(self, by: Sequence[str]) -> None:
        super().__init__()
        self._by = by

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return [take(batch, order_by(batch, self._by))]
