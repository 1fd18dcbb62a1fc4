"""Rows that tasks of a transform of DataFrames reject, as dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.engine.tasks import task
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk.columns.row_json import row_payload


@dataclass(frozen=True)
class RejectedRows:
    """The destination of the rejected rows of a node."""

    spool: Spool

    def __call__(self, part: str, rows: Sequence[tuple[pa.RecordBatch, RecordError]]) -> None:
        """Writes the rows of a part of a batch; see `Rejects`."""
        writer = self.spool.begin(task.batch_number(), part)
        for batch, error in rows:
            for index in range(batch.num_rows):
                writer.add(row_payload(batch, index), error)
        writer.close()
