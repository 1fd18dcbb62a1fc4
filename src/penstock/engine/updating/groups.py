"""State of an aggregate that accumulates: a partial row for each group.

A table of partial rows has these columns:

* `KEY`, `HASH_2`: together a hash of 128 bits of the group
* `WEIGHT`: the number of rows of the group
* columns with the values of the group
* partial columns, each a sum, minimum or maximum over the rows of the group

Partial rows of one group are merged column by column. A null is the value of a partial column over
no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.updating.rows import HASH_2, KEY, WEIGHT, RowState, take

Function = Literal["sum", "min", "max"]

_IDENTITY = [KEY, HASH_2]
_INDEX = "_penstock_index"
_BEFORE, _AFTER = "_penstock_before_", "_penstock_after_"


class AffectedGroups(NamedTuple):
    """The partial rows of the changed groups: those before the changes and those after them.

    A group without rows is in neither. A group whose partial columns stay the same is in neither.
    """

    before: pa.Table
    after: pa.Table


@dataclass(frozen=True)
class GroupMerge:
    """A merge strategy of a `RowState`: merges partial rows, each column by its function."""

    functions: Mapping[str, Function]

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Returns the partial row of each group that is not empty, sorted by key."""
        merged = _merge(rows, {WEIGHT: "sum", **self.functions})
        sums = [name for name, function in self.functions.items() if function == "sum"]
        kept = [_is_not_zero(merged.column(name)) for name in (WEIGHT, *sums)]
        return merged.filter(reduce(pc.or_, kept)).sort_by(KEY).combine_chunks()

    def affected_rows(self, state: RowState, changes: pa.Table) -> AffectedGroups:
        """Returns the groups that changes change, without adding the changes to the state."""
        functions: dict[str, Function] = {WEIGHT: "sum", **self.functions}
        stored = state.find(np.unique(changes.column(KEY).to_numpy()))
        parts = [
            *(_with_both(rows, functions, is_stored=True) for rows in stored),
            _with_both(changes, functions, is_stored=False),
        ]
        both = {f"{when}{name}": f for name, f in functions.items() for when in (_BEFORE, _AFTER)}
        rows = _merge(pa.concat_tables(parts), both)
        existed, exists = (
            pc.fill_null(pc.greater(rows.column(f"{when}{WEIGHT}"), 0), False)
            for when in (_BEFORE, _AFTER)
        )
        changed = reduce(
            pc.or_,
            (_differs(rows, name) for name in self.functions),
            pc.xor(existed, exists),
        )
        return AffectedGroups(
            _only(rows.filter(pc.and_(existed, changed)), _BEFORE, changes.schema),
            _only(rows.filter(pc.and_(exists, changed)), _AFTER, changes.schema),
        )


def _merge(rows: pa.Table, functions: Mapping[str, Function]) -> pa.Table:
    """Returns one row for each group. Columns without a function have the values of one row."""
    identity = rows.select([*_IDENTITY, *functions])
    identity = identity.append_column(_INDEX, pa.array(np.arange(rows.num_rows)))
    groups = identity.group_by(_IDENTITY, use_threads=False).aggregate(
        [(_INDEX, "min"), *functions.items()]
    )
    merged = take(rows.drop_columns(list(functions)), groups.column(f"{_INDEX}_min").to_numpy())
    for name, function in functions.items():
        values = groups.column(f"{name}_{function}").cast(rows.schema.field(name).type)
        merged = merged.append_column(name, values)
    return merged.select(rows.schema.names)


def _with_both(rows: pa.Table, functions: Mapping[str, Function], *, is_stored: bool) -> pa.Table:
    """Returns rows with each merged column twice: as it is before the changes, and after them."""
    both = rows.drop_columns(list(functions))
    for name in functions:
        values = rows.column(name)
        before = values if is_stored else pa.nulls(rows.num_rows, values.type)
        both = both.append_column(f"{_BEFORE}{name}", before)
        both = both.append_column(f"{_AFTER}{name}", values)
    return both


def _only(rows: pa.Table, when: str, schema: pa.Schema) -> pa.Table:
    """Returns the rows before the changes or after them, with the columns of a schema."""
    present = set(rows.schema.names)
    chosen = [name if name in present else f"{when}{name}" for name in schema.names]
    return rows.select(chosen).rename_columns(schema.names)


def _differs(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Returns whether the values of a column before the changes and after them differ."""
    before, after = rows.column(f"{_BEFORE}{name}"), rows.column(f"{_AFTER}{name}")
    return pc.if_else(
        pc.xor(pc.is_null(before), pc.is_null(after)),
        True,
        pc.fill_null(pc.not_equal(before, after), False),
    )


def _is_not_zero(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.not_equal(pc.sign(values).cast(pa.float64()), 0.0), False)
