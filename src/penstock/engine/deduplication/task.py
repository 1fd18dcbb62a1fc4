"""Tasks of a deduplication: compare the rows of a batch with those that were kept before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.error_codec import encode_errors
from penstock.core.errors import Bug
from penstock.engine.deduplication.attempt import Attempt
from penstock.engine.deduplication.kept_rows import (
    EVENT_TIME,
    KEPT,
    Flags,
    Unexpired,
    find_first_rows,
)
from penstock.engine.tasks import task as spark_task
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import KEY, ORDER
from penstock.engine.updating.task import BUCKET
from penstock.engine.updating.versions import OperatorStateDirectory

BUCKETS = 16
"""The number of buckets of keys, which stays the same for the life of a state."""


@dataclass(frozen=True)
class FirstRows:
    """A function over a column of structs, one for each row: returns whether the row is kept.

    The structs have `BUCKET`, `ORDER` and the columns of `KEPT`. All rows of a bucket are in one
    partition, those with the same `ORDER` in the order of arrival. `within` is in microseconds.
    A row without an event time is kept, and so is a late one, which has no effect on other rows.

    The kept rows of a streaming query are in `directory`, under the name of the operator. Without
    a directory the rows are all rows of the input.
    """

    within: int
    directory: str | None
    operator: str

    @encode_errors
    def __call__(self, columns: Iterator[pa.StructArray]) -> Iterator[pa.BooleanArray]:
        arrays = list(columns)
        if not arrays:
            return
        batches = [pa.RecordBatch.from_struct_array(array) for array in arrays]
        table = pa.Table.from_batches(batches).combine_chunks()
        order = np.argsort(table.column(ORDER).fill_null(0).to_numpy(), kind="stable")
        found = np.empty(table.num_rows, np.bool_)
        found[order] = self._find(table.take(pa.array(order)))
        start = 0
        for array in arrays:
            yield pa.array(found[start : start + len(array)])
            start += len(array)

    def _find(self, rows: pa.Table) -> Flags:
        """Returns whether each row is kept, in the order of arrival."""
        if self.directory is None:
            return find_first_rows(rows, [], self.within)
        files, watermark = self._state(Path(self.directory))
        buckets, times = rows.column(BUCKET).to_numpy(), rows.column(EVENT_TIME)
        compared = np.asarray(pc.greater(times, watermark).fill_null(False))
        found = np.ones(rows.num_rows, np.bool_)
        for bucket in np.unique(buckets[compared]).tolist():
            chosen = np.flatnonzero(compared & (buckets == bucket))
            part = rows.select(KEPT.names).take(pa.array(chosen)).cast(KEPT)
            found[chosen] = self._update(files, bucket, part, watermark)
        return found

    def _update(self, files: BucketFiles, bucket: int, rows: pa.Table, watermark: int) -> Flags:
        """Returns the rows of a bucket that are kept, and adds them to its state."""
        merge = Unexpired(watermark - self.within)
        state = files.load(bucket, merge)
        state.merge = merge
        before = state.size
        near = state.find(np.unique(rows.column(KEY).to_numpy()))
        found = find_first_rows(rows, near, self.within)
        kept = rows.filter(pa.array(found))
        if kept.num_rows:
            state.add(kept)
            files.save(bucket, state, kept, state.size - before)
        return found

    def _state(self, directory: Path) -> tuple[BucketFiles, int]:
        """Returns the files before the batch, and its watermark for late rows in microseconds."""
        attempt = Attempt.read(directory)
        number = spark_task.batch_number()
        if number != attempt.batch:
            raise Bug(f"a task of batch {number} runs in batch {attempt.batch}")
        version = OperatorStateDirectory(directory).before(number)
        chains = version.chains.get(self.operator, {})
        files = BucketFiles(str(directory), f"{self.operator}/{attempt.name}", chains)
        return files, attempt.watermark * 1000
