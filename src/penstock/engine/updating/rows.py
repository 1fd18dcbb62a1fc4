"""State of an updating operator: a multiset of rows, found by the hash of their key.

A table of state or of changes has these columns, of type int64, and columns with values:

* `KEY`: a hash of the key. Keys with the same hash are changed together.
* `HASH_1`, `HASH_2`: hashes of the row and its side, the same for equal rows only
* `SIDE`: the input of the operator
* `WEIGHT`: how often the row occurs, negative for a row that is retracted
* `ORDER`: the order of arrival; of equal rows that of the first one
* `TIME`: the time of the batch, in milliseconds; of equal rows that of the last one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

KEY = "_penstock_key"
HASH_1 = "_penstock_hash_1"
HASH_2 = "_penstock_hash_2"
SIDE = "_penstock_side"
WEIGHT = "_penstock_weight"
ORDER = "_penstock_order"
TIME = "_penstock_time"

_IDENTITY = [KEY, HASH_1, HASH_2, SIDE]
_LEVEL_FACTOR = 2
"""A chunk is merged with the one before that has less than this many times its rows."""

Numbers = npt.NDArray[np.int64]
Merge = Callable[[pa.Table], pa.Table]


class AffectedRows(NamedTuple):
    """The rows of the keys that changes have affected, before and after these changes.

    `before` and `after` are the weights of each row of `rows`. A row may have weight 0 in one of
    them, and a negative weight if it was retracted before it was added.
    """

    rows: pa.Table
    before: Numbers
    after: Numbers


@dataclass
class RowState:
    """The rows of one bucket of keys.

    `chunks` are sorted by key, the largest ones first. A row may be in several chunks: its weight
    is the sum. Adding n changes costs O(n log n) on average, and finding a key O(log n) for each
    chunk. `merge` makes one chunk of the rows of several ones.
    """

    chunks: list[pa.Table] = field(default_factory=list)
    merge: Merge = field(default_factory=lambda: consolidate)

    @property
    def size(self) -> int:
        """The number of stored rows."""
        return sum(chunk.num_rows for chunk in self.chunks)

    @property
    def bytes(self) -> int:
        """The number of bytes of the stored rows."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def affected_rows(self, changes: pa.Table, *, joins: bool = False) -> AffectedRows:
        """Returns the rows of all keys of the changes, without adding the changes.

        With `joins` unchanged rows are left out, unless the other side of their key has changes.
        """
        stored = self._joined(changes) if joins else self.find(np.unique(_numbers(changes, KEY)))
        parts = [
            *(
                _with_weights(rows, _numbers(rows, WEIGHT), _numbers(rows, WEIGHT))
                for rows in stored
            ),
            _with_weights(changes, np.zeros(changes.num_rows, np.int64), _numbers(changes, WEIGHT)),
        ]
        rows = _in_order(_consolidate(pa.concat_tables(parts), (_BEFORE, _AFTER)))
        before, after = _numbers(rows, _BEFORE), _numbers(rows, _AFTER)
        return AffectedRows(rows.drop_columns([_BEFORE, _AFTER]), before, after)

    def find(self, keys: Numbers) -> list[pa.Table]:
        """Returns the rows of keys, which are sorted, in each chunk."""
        return [_find(chunk, keys) for chunk in self.chunks]

    def _joined(self, changes: pa.Table) -> list[pa.Table]:
        """Returns the rows that changes of one side are joined with, and those that they change."""
        if not self.chunks:
            return []
        keys, sides = _numbers(changes, KEY), _numbers(changes, SIDE)
        distinct, other = np.unique(keys), [np.unique(keys[sides != side]) for side in (0, 1)]
        return [_find_joined(chunk, distinct, other, changes) for chunk in self.chunks]

    def expired(self, limit: int, changes: pa.Table, sides: Sequence[int]) -> pa.Table:
        """Returns changes that retract the rows of the keys whose rows are all before a time.

        Only rows of these sides are retracted. Keys of `changes` do not expire.
        """
        rows = self.table()
        if rows is None or not rows.num_rows:
            return changes.slice(0, 0)
        keys = _numbers(rows, KEY)
        starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
        newest = np.maximum.reduceat(_numbers(rows, TIME), starts)
        old = keys[starts][newest < limit]
        old = old[~np.isin(old, _numbers(changes, KEY))]
        found = _find(rows, old)
        found = found.filter(pa.array(np.isin(_numbers(found, SIDE), sides)))
        return negate(found).select(changes.schema.names)

    def add(self, changes: pa.Table) -> None:
        """Adds changes to the rows."""
        self.chunks.append(self.merge(changes))
        while (
            len(self.chunks) > 1
            and self.chunks[-2].num_rows < _LEVEL_FACTOR * self.chunks[-1].num_rows
        ):
            self.chunks[-2:] = [self.merge(pa.concat_tables(self.chunks[-2:]))]

    def table(self) -> pa.Table | None:
        """Returns all rows, each once; None without chunks."""
        return self.merge(pa.concat_tables(self.chunks)) if self.chunks else None


def with_fields(rows: pa.Table, columns: pa.Schema | None) -> pa.Table:
    """Returns rows with the further fields at the end of structs in `columns`, as nulls."""
    for target in columns or ():
        index = rows.schema.get_field_index(target.name)
        known = rows.schema.field(index).type.num_fields if index >= 0 else 0
        if known and known < target.type.num_fields:
            values = rows.column(index).combine_chunks()
            added = [target.type.field(place) for place in range(known, target.type.num_fields)]
            extended = pa.StructArray.from_arrays(
                [*values.flatten(), *(pa.nulls(len(values), each.type) for each in added)],
                fields=[*values.type, *added], mask=values.is_null(),
            )  # fmt: skip
            rows = rows.set_column(index, target.name, extended)
    return rows


def consolidate(rows: pa.Table) -> pa.Table:
    """Returns each row once, with the sum of its weights, sorted by key; no row has weight 0."""
    merged = _consolidate(rows, (WEIGHT,))
    order = np.argsort(_numbers(merged, KEY), kind="stable")
    return take(merged, order).combine_chunks()


_BEFORE, _AFTER, _INDEX = "_penstock_before", "_penstock_after", "_penstock_index"


def take(rows: pa.Table, places: Numbers) -> pa.Table:
    """Returns the rows at these places. Those of one batch take half of the time of chunks."""
    batches, index = rows.combine_chunks().to_batches(), pa.array(places)
    if len(batches) != 1:  # no rows, or texts of more than 2 GiB
        return rows.take(index)
    return pa.Table.from_batches([batches[0].take(index)])


def _consolidate(rows: pa.Table, weights: Sequence[str]) -> pa.Table:
    """Returns each row once, with the sums of the columns `weights`, which are not all 0."""
    if _is_consolidated(rows, weights):
        return rows.select([*(n for n in rows.column_names if n not in weights), *weights])
    identity = rows.select([*_IDENTITY, ORDER, TIME, *weights])
    identity = identity.append_column(_INDEX, pa.array(np.arange(rows.num_rows)))
    aggregates = [
        (_INDEX, "min"),
        (ORDER, "min"),
        (TIME, "max"),
        *((name, "sum") for name in weights),
    ]
    groups = identity.group_by(_IDENTITY, use_threads=False).aggregate(aggregates)
    kept = np.zeros(groups.num_rows, np.bool_)
    for name in weights:
        kept |= _numbers(groups, f"{name}_sum") != 0
    groups = groups.filter(pa.array(kept))
    merged, index = rows.drop_columns(list(weights)), _numbers(groups, f"{_INDEX}_min")
    if not np.array_equal(index, np.arange(rows.num_rows)):
        merged = take(merged, index)
    merged = _set(merged, ORDER, groups.column(f"{ORDER}_min"))
    merged = _set(merged, TIME, groups.column(f"{TIME}_max"))
    for name in weights:
        merged = merged.append_column(name, groups.column(f"{name}_sum"))
    return merged


def _is_consolidated(rows: pa.Table, weights: Sequence[str]) -> bool:
    """Returns whether each row has a hash of its own and a weight."""
    hashes = np.sort(_numbers(rows, HASH_1))
    if np.any(hashes[:-1] == hashes[1:]):
        return False
    return bool(np.all(np.any([_numbers(rows, name) != 0 for name in weights], axis=0)))


def _in_order(rows: pa.Table) -> pa.Table:
    """Returns rows in the order of arrival."""
    order = _numbers(rows, ORDER)
    return rows if np.all(order[:-1] <= order[1:]) else rows.sort_by(ORDER)


def _find(chunk: pa.Table, keys: Numbers) -> pa.Table:
    """Returns the rows of a chunk with one of the keys, which are sorted."""
    return take(chunk, _places(chunk, keys))


def _find_joined(
    chunk: pa.Table, keys: Numbers, other: Sequence[Numbers], changes: pa.Table
) -> pa.Table:
    """Returns the rows of a chunk whose other side has changes, and those that may be changed.

    `other` are the keys with changes of the other side, by side.
    """
    places = _places(chunk, keys)
    found = take(chunk.select([KEY, HASH_1, SIDE]), places)
    key, side = _numbers(found, KEY), _numbers(found, SIDE)
    chosen = np.isin(_numbers(found, HASH_1), _numbers(changes, HASH_1))
    for number, changed in enumerate(other):
        chosen |= (side == number) & np.isin(key, changed)
    return take(chunk, places[chosen])


def _places(chunk: pa.Table, keys: Numbers) -> Numbers:
    """Returns the places of the rows of a chunk with one of the keys, which are sorted."""
    stored = _numbers(chunk, KEY)
    start, stop = np.searchsorted(stored, keys, "left"), np.searchsorted(stored, keys, "right")
    counts = stop - start
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    places: Numbers = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(start, counts)
    return places


def _with_weights(rows: pa.Table, before: Numbers, after: Numbers) -> pa.Table:
    rows = rows.drop_columns([WEIGHT])
    return rows.append_column(_BEFORE, pa.array(before)).append_column(_AFTER, pa.array(after))


def _set(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _numbers(rows: pa.Table, name: str) -> Numbers:
    values: Numbers = rows.column(name).to_numpy()
    return values


def negate(rows: pa.Table) -> pa.Table:
    """Returns the rows with negated weights."""
    return _set(rows, WEIGHT, pc.negate(rows.column(WEIGHT)))
