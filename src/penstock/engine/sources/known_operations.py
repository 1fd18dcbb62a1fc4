"""Rows of changes whose operation is known. The others are bad records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk.columns.row_json import row_payload
from penstock.sdk.operations import unknown_operations


@dataclass(frozen=True)
class KnownOperations:
    """A function for `mapInArrow`: yields the rows with a known operation in a column."""

    column: str
    spool: Spool

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dead_letters = self.spool.begin(spark_task.batch_number(), spark_task.partition())
        for rows in batches:
            known, errors = unknown_operations(rows, self.column)
            for index, error in errors:
                dead_letters.add(row_payload(rows, index), error)
            yield rows.filter(known) if errors else rows
        dead_letters.close()
