"""Partial rows of groups: merging, and the groups that changes change."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.updating import files as state_files
from penstock.engine.updating.files import MAX_CHAIN, BucketFiles
from penstock.engine.updating.groups import AffectedGroups, GroupMerge
from penstock.engine.updating.rows import HASH_2, KEY, WEIGHT, RowState
from penstock.engine.updating.versions import StateVersion

MERGE = GroupMerge({"total": "sum", "low": "min", "high": "max"})
SCHEMA = pa.schema([
    (KEY, pa.int64()), (HASH_2, pa.int64()), (WEIGHT, pa.int64()), ("group", pa.string()),
    ("total", pa.decimal128(12, 2)), ("low", pa.string()), ("high", pa.float64()),
])  # fmt: skip


def changes(*rows: tuple[str, int, str | None, str | None, float | None]) -> pa.Table:
    """Returns partial rows of groups: group, weight, total, low, high."""
    return pa.Table.from_pylist(
        [
            {
                KEY: ord(group[0]), HASH_2: ord(group[-1]), WEIGHT: weight, "group": group,
                "total": None if total is None else Decimal(total), "low": low, "high": high,
            }
            for group, weight, total, low, high in rows
        ],
        SCHEMA,
    )  # fmt: skip


def values(rows: pa.Table) -> list[tuple[Any, ...]]:
    names = [WEIGHT, "group", "total", "low", "high"]
    return sorted((tuple(row[name] for name in names) for row in rows.to_pylist()), key=str)


def apply(state: RowState, rows: pa.Table) -> AffectedGroups:
    affected = MERGE.affected_rows(state, rows)
    state.add(rows)
    return affected


def test_columns_merge_by_their_functions() -> None:
    state = RowState(merge=MERGE)
    apply(state, changes(("a", 1, "1.50", "m", 2.0), ("b", 1, None, None, None)))
    affected = apply(state, changes(("a", 2, "0.25", "k", 1.0), ("c", 1, "9.00", "z", 0.0)))
    assert values(affected.before) == [(1, "a", Decimal("1.50"), "m", 2.0)]
    assert values(affected.after) == [
        (1, "c", Decimal("9.00"), "z", 0.0),
        (3, "a", Decimal("1.75"), "k", 2.0),
    ]
    assert affected.after.schema == SCHEMA


def test_a_group_without_rows_disappears() -> None:
    state = RowState(merge=MERGE)
    apply(state, changes(("a", 2, "3.00", None, None)))
    affected = apply(state, changes(("a", -2, "-3.00", None, None)))
    assert values(affected.before) == [(2, "a", Decimal("3.00"), None, None)]
    assert affected.after.num_rows == 0
    assert state.size == 0


def test_a_group_without_rows_is_kept_until_its_sums_are_zero() -> None:
    state = RowState(merge=MERGE)
    apply(state, changes(("a", 0, "-4.00", None, None)))
    assert state.size == 1
    affected = apply(state, changes(("a", 1, "5.00", None, None)))
    assert affected.before.num_rows == 0
    assert values(affected.after) == [(1, "a", Decimal("1.00"), None, None)]


def test_a_group_whose_columns_stay_the_same_is_unchanged() -> None:
    state = RowState(merge=MERGE)
    apply(state, changes(("a", 1, None, "m", 2.0), ("b", 1, "1.00", "m", 2.0)))
    affected = apply(state, changes(("a", 1, None, "n", 1.0), ("b", 1, "0.00", "m", None)))
    assert affected.before.num_rows == affected.after.num_rows == 0


@pytest.mark.parametrize(
    ("stored", "added"), [(None, "0.00"), (None, "7.00"), ("1.00", "7.00")],
    ids=["null-to-zero", "null-to-value", "value-to-value"],
)  # fmt: skip
def test_a_changed_column_changes_the_group(stored: str | None, added: str) -> None:
    state = RowState(merge=MERGE)
    apply(state, changes(("a", 1, stored, None, None)))
    affected = apply(state, changes(("a", 1, added, None, None)))
    assert affected.before.num_rows == affected.after.num_rows == 1


def test_groups_with_one_key_are_distinct() -> None:
    state = RowState(merge=MERGE)
    apply(state, changes(("ab", 1, "1.00", None, None)))
    affected = apply(state, changes(("ac", 1, "2.00", None, None)))
    assert affected.before.num_rows == 0
    assert values(affected.after) == [(1, "ac", Decimal("2.00"), None, None)]
    assert state.size == 2


@pytest.mark.slow
def test_many_batches_are_as_one() -> None:
    source = random.Random(3)
    rows = [
        (source.choice("abcdefgh"), 1, f"{source.randint(-99, 99)}.10", source.choice("xyz"), 1.5)
        for _ in range(300)
    ]
    state = RowState(merge=MERGE)
    for start in range(0, len(rows), 7):
        apply(state, changes(*rows[start : start + 7]))
    table = state.table()
    assert table is not None
    assert values(table) == values(MERGE(changes(*rows)))
    assert len(state.chunks) <= 5


@pytest.mark.slow
def test_groups_are_loaded_from_changes_and_snapshots(tmp_path: Path) -> None:
    chains: dict[int, Any] = {}
    for batch in range(MAX_CHAIN + 3):
        version = StateVersion(batch - 1, 1, {"count": chains})
        files = BucketFiles.of(tmp_path, "count", batch, version)
        state_files.cache.entries.clear()
        state = files.load(0, MERGE)
        rows = changes(("a", 1, "1.00", "m", float(batch)), (f"b{batch}", 1, "2.00", "m", None))
        state.add(rows)
        files.save(0, state, rows, 2 if batch == 0 else 1)
        chains = files.written()
        assert StateVersion(batch, 1, {"count": chains}).rows == batch + 2
    assert chains[0][0].is_snapshot
    table = BucketFiles.of(tmp_path, "count", 99, StateVersion(98, 1, {"count": chains})).load(
        0, MERGE
    ).table()  # fmt: skip
    assert table is not None
    last = float(MAX_CHAIN + 2)
    assert (MAX_CHAIN + 3, "a", Decimal(f"{MAX_CHAIN + 3}.00"), "m", last) in values(table)
