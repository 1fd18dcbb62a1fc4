"""Tasks of aggregates that accumulate: merge the changes of a batch into the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.error_codec import encode_errors
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.groups import GroupMerge
from penstock.engine.updating.rows import HASH_2, KEY, WEIGHT
from penstock.engine.updating.task import ADDED, BUCKET, PHASE, REMOVED

_BATCH_ROWS = 10_000


@dataclass(frozen=True)
class UpdateGroups:
    """A function for `mapInArrow`: merges partial rows into the state, and returns changed groups.

    The input has the columns of `engine.updating.groups` and `BUCKET`, all changes of a bucket in
    one partition. The output has `PHASE`, the values of the group and the partial columns: for each
    changed group its partial row before the batch and the one after it.
    """

    files: BucketFiles
    merge: GroupMerge

    def of_batch(self, files: BucketFiles, number: int, time: int) -> UpdateGroups:
        """Returns the task of another batch."""
        return replace(self, files=files)

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        changes = list(batches)
        if not changes:
            return
        table = pa.Table.from_batches(changes).combine_chunks()
        for bucket in pc.unique(table.column(BUCKET)).to_pylist():
            chosen = table.filter(pc.equal(table.column(BUCKET), bucket)).drop_columns([BUCKET])
            state = self.files.load(bucket, self.merge)
            merged = self.merge(chosen)
            affected = self.merge.affected_rows(state, merged)
            state.add(merged)
            added = affected.after.num_rows - affected.before.num_rows
            self.files.save(bucket, state, merged, added)
            yield from _rows(affected.before, REMOVED)
            yield from _rows(affected.after, ADDED)


def _rows(groups: pa.Table, phase: int) -> Iterator[pa.RecordBatch]:
    rows = groups.drop_columns([KEY, HASH_2, WEIGHT])
    phases = pa.array(np.full(rows.num_rows, phase, np.int8))
    yield from rows.add_column(0, PHASE, phases).to_batches(max_chunksize=_BATCH_ROWS)
