"""Tasks of updating operators: add the changes of a batch to the state of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.error_codec import encode_errors
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import (
    HASH_2,
    KEY,
    ORDER,
    SIDE,
    TIME,
    WEIGHT,
    AffectedRows,
    Numbers,
    RowState,
    negate,
    take,
)

BUCKET = "_penstock_bucket"
PHASE = "_penstock_phase"
VALUES = "_penstock_values"
"""The prefix of the columns with the rows of each side, as structs."""

KEY_2 = "_penstock_key_2"
"""A second hash of the key, for operators that replace rows."""
_IDENTITY = [KEY, KEY_2]
_INDEX = "_penstock_index"
NO_SIDE = -1
_BATCH_ROWS = 10_000
_ORDER_BITS = 32

KEPT, REMOVED, ADDED = 0, -1, 1
"""The values of `PHASE`: rows before and after the batch, rows only before, rows only after."""


@dataclass(frozen=True)
class Expiry:
    """The expiry of rows of these inputs: of keys whose rows are all before `limit`.

    Without a limit no rows are removed in this batch.
    """

    sides: tuple[int, ...]
    limit: int | None


@dataclass(frozen=True)
class UpdateState:
    """A function for `mapInArrow`: adds changes to the state, and returns the rows of their keys.

    The input has the columns of `engine.updating.rows` but `TIME`, and `BUCKET`, with all changes
    of a bucket in one partition. Rows whose side is `NO_SIDE` only name a bucket. The output has
    `PHASE`, `SIDE` and the columns with values, a row for each occurrence, in the order of arrival.

    `time` is the time of the batch in milliseconds. With `replaces` a change is the new row of its
    key, or with a negative weight its delete. With `joins` the output lacks unchanged rows of a key
    without changes of the other side: no change of an inner join has them.
    """

    files: BucketFiles
    batch: int
    time: int
    expiry: Expiry | None = None
    replaces: bool = False
    joins: bool = False

    @property
    def removes(self) -> bool:
        """Whether rows expire in this batch, in all buckets of the input."""
        return self.expiry is not None and self.expiry.limit is not None

    def of_batch(self, files: BucketFiles, number: int, time: int) -> UpdateState:
        """Returns the task of another batch, in which no rows expire."""
        expiry = None if self.expiry is None else replace(self.expiry, limit=None)
        return replace(self, files=files, batch=number, time=time, expiry=expiry)

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        changes = list(batches)
        if not changes:
            return
        table = _nullable(pa.Table.from_batches(changes))
        buckets, order = table.column(BUCKET).to_numpy(), table.column(ORDER).to_numpy()
        is_change = table.column(SIDE).to_numpy() != NO_SIDE
        table = table.drop_columns([BUCKET]).combine_chunks()
        for bucket in pc.unique(pa.array(buckets)).to_pylist():
            chosen = np.flatnonzero((buckets == bucket) & is_change)
            chosen = chosen[np.argsort(order[chosen], kind="stable")]
            affected = self._update(bucket, self._arranged(take(table, chosen)))
            if affected is not None:
                yield from _rows(affected)

    def _arranged(self, changes: pa.Table) -> pa.Table:
        """Returns changes, in the order of arrival, with their time, after those of before."""
        order = pa.array(np.arange(changes.num_rows) + (self.batch << _ORDER_BITS))
        changes = changes.set_column(changes.schema.get_field_index(ORDER), ORDER, order)
        times = np.full(changes.num_rows, self.time, np.int64)
        changes = changes.append_column(TIME, pa.array(times))
        if self.replaces and self.expiry is not None:
            # A row that arrives again unchanged is another row, with a later time.
            hashes = np.bitwise_xor(changes.column(HASH_2).to_numpy(), times)
            index = changes.schema.get_field_index(HASH_2)
            changes = changes.set_column(index, HASH_2, pa.array(hashes))
        return changes

    def _update(self, bucket: int, changes: pa.Table) -> AffectedRows | None:
        state = self.files.load(bucket, columns=changes.schema if self.replaces else None)
        if self.replaces:
            changes = _replacements(state, changes)
        if self.expiry is not None and self.expiry.limit is not None:
            expired = state.expired(self.expiry.limit, changes, self.expiry.sides)
            changes = pa.concat_tables([changes, expired])
        if not changes.num_rows:
            return None
        affected = state.affected_rows(changes, joins=self.joins)
        state.add(changes)
        added = np.count_nonzero(affected.after) - np.count_nonzero(affected.before)
        self.files.save(bucket, state, changes, int(added))
        return affected


def _nullable(rows: pa.Table) -> pa.Table:
    """Returns rows with columns that can be null, as those of the stored rows."""
    schema = pa.schema([column.with_nullable(True) for column in rows.schema])
    return pa.Table.from_arrays(rows.columns, schema=schema)


def _replacements(state: RowState, changes: pa.Table) -> pa.Table:
    """Returns the changes that replace the rows of each key by its last row in order of arrival."""
    places = pa.array(np.arange(changes.num_rows))
    indexed = changes.select(_IDENTITY).append_column(_INDEX, places)
    last = indexed.group_by(_IDENTITY, use_threads=False).aggregate([(_INDEX, "max")])
    changes = take(changes, last.column(f"{_INDEX}_max").to_numpy())
    affected = state.affected_rows(changes)
    stored = affected.rows.append_column(WEIGHT, pa.array(affected.before))
    replaced = (affected.before != 0) & np.isin(_pairs(stored), _pairs(changes))
    stored = negate(stored.filter(pa.array(replaced)))
    added = changes.filter(pc.greater(changes.column(WEIGHT), 0))
    return pa.concat_tables([stored.select(changes.schema.names), added])


def _pairs(rows: pa.Table) -> npt.NDArray[np.void]:
    """Returns both hashes of the key of each row as one value."""
    pairs: Numbers = np.stack([rows.column(name).to_numpy() for name in _IDENTITY], axis=1)
    return np.ascontiguousarray(pairs).view([("one", np.int64), ("other", np.int64)]).ravel()


def _rows(affected: AffectedRows) -> Iterator[pa.RecordBatch]:
    """Yields each row as often as it occurs before or after the batch, with its phase."""
    before, after = np.maximum(affected.before, 0), np.maximum(affected.after, 0)
    kept = np.minimum(before, after)
    counts = np.stack([kept, before - kept, after - kept], axis=1).ravel()
    phases = np.repeat(np.tile(np.array([KEPT, REMOVED, ADDED], np.int8), len(kept)), counts)
    index = np.repeat(np.repeat(np.arange(len(kept)), 3), counts)
    names = [SIDE, *(name for name in affected.rows.schema.names if name.startswith(VALUES))]
    rows = affected.rows.select(names).combine_chunks()
    is_once = np.array_equal(index, np.arange(rows.num_rows))
    for start in range(0, len(index), _BATCH_ROWS):
        part = slice(start, start + _BATCH_ROWS)
        found = rows.slice(start, _BATCH_ROWS) if is_once else take(rows, index[part])
        batch = found.add_column(0, PHASE, pa.array(phases[part]))
        yield from batch.combine_chunks().to_batches()
