"""Rows that a deduplication keeps, by their event times."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from penstock.engine.deduplication.kept_rows import EVENT_TIME, KEPT, Unexpired, find_first_rows
from penstock.engine.updating.rows import HASH_2, KEY, RowState

Row = tuple[int, int, int | None]


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(KEPT.names, row, strict=True)) for row in rows], KEPT)


def found(rows: Sequence[Row], within: int, kept: Sequence[Row] = ()) -> list[bool]:
    stored = [table(kept)] if kept else []
    return [bool(flag) for flag in find_first_rows(table(rows), stored, within)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 9, 10], [True, False, True]),
        ([0, 9, 18], [True, False, True]),
        ([5, 0, 14, 15], [True, False, False, True]),
        ([0, 20, 10], [True, True, True]),
        ([0, 20, 11], [True, True, False]),
        ([7, 7], [True, False]),
        ([None, None, 3], [True, True, True]),
    ],
)
def test_a_row_is_kept_at_the_distance_of_within(
    times: list[int | None], expected: list[bool]
) -> None:
    assert found([(1, 1, time) for time in times], 10) == expected


def test_keys_are_equal_if_both_hashes_are() -> None:
    assert found([(1, 1, 0), (1, 2, 0), (2, 1, 0), (1, 2, 5)], 10) == [True, True, True, False]


def test_rows_near_earlier_ones_are_dropped() -> None:
    kept = [(1, 1, 100), (2, 2, 100)]
    assert found([(1, 1, 95), (1, 1, 110), (3, 3, 100)], 10, kept) == [False, True, True]


def test_only_equal_times_are_duplicates_within_zero() -> None:
    assert found([(1, 1, 5), (1, 1, 6), (1, 1, 5)], 0) == [True, True, False]


@pytest.mark.slow
def test_divisions_into_batches_keep_the_same_rows() -> None:
    """Rows are in order within the delay; kept rows leave the state by the watermark."""
    chance = random.Random(5)
    for _ in range(200):
        within, delay = chance.choice([1, 5, 10, 30]), chance.choice([1, 5, 20])
        rows = [
            (chance.randint(1, 3), 0, 100 + 2 * number + chance.randint(1 - delay, 0))
            for number in range(40)
        ]
        whole = divided(rows, [len(rows)], within, delay)
        assert whole == found(rows, within)
        for _ in range(3):
            cuts = sorted(chance.sample(range(1, len(rows)), chance.randint(1, 20)))
            assert divided(rows, [*cuts, len(rows)], within, delay) == whole


def divided(rows: list[Row], ends: list[int], within: int, delay: int) -> list[bool]:
    """Returns the kept rows of batches with these ends, with the state as tasks have it."""
    state, flags, start, watermark = RowState(), [], 0, 0
    for end in ends:
        batch = table(rows[start:end])
        assert min(batch.column(EVENT_TIME).to_pylist()) > watermark
        state.merge = Unexpired(watermark - within)
        keys = sorted(set(batch.column(KEY).to_pylist()))
        near = state.find(pa.array(keys, pa.int64()).to_numpy())
        kept = find_first_rows(batch, near, within)
        state.add(batch.filter(pa.array(kept)))
        flags += [bool(flag) for flag in kept]
        times = [time for _, _, time in rows[:end] if time is not None]
        watermark, start = max(watermark, max(times) - delay), end
    return flags


def test_expired_rows_leave_the_state() -> None:
    state = RowState(merge=Unexpired(10))
    state.add(table([(1, 1, 10), (2, 2, 11)]))
    stored = state.table()
    assert stored is not None and stored.column(HASH_2).to_pylist() == [2]
