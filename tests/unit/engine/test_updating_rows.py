"""The rows of an updating operator: multisets, found by key."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.engine.updating.rows import (
    HASH_1,
    HASH_2,
    KEY,
    ORDER,
    SIDE,
    TIME,
    WEIGHT,
    RowState,
    consolidate,
    with_fields,
)

Row = tuple[int, str]


def changes(rows: list[tuple[Row, int]], order: int = 0, time: int = 0, side: int = 0) -> pa.Table:
    """Returns changes of rows (key, value) of a side with weights."""
    return pa.table({
        KEY: pa.array([key for (key, _), _ in rows], pa.int64()),
        HASH_1: pa.array([hash((side, row)) for row, _ in rows], pa.int64()),
        HASH_2: pa.array([hash((7, side, row)) for row, _ in rows], pa.int64()),
        SIDE: pa.array([side] * len(rows), pa.int64()),
        WEIGHT: pa.array([weight for _, weight in rows], pa.int64()),
        ORDER: pa.array(range(order, order + len(rows)), pa.int64()),
        TIME: pa.array([time] * len(rows), pa.int64()),
        "value": pa.array([value for (_, value), _ in rows], pa.string()),
    })  # fmt: skip


def count(rows: pa.Table, weights: list[int]) -> Counter[Row]:
    """Returns the weight of each row that has one."""
    pairs = zip(rows.column(KEY).to_pylist(), rows.column("value").to_pylist(), strict=True)
    weighted = zip(pairs, weights, strict=True)
    return Counter({row: weight for row, weight in weighted if weight})


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", range(5))
def test_rows_of_touched_keys_before_and_after_random_changes(seed: int) -> None:
    chance = random.Random(seed)
    state, expected = RowState(), Counter[Row]()
    for number in range(60):
        rows = [
            ((chance.randrange(20), chance.choice("abc")), chance.choice((1, 1, -1)))
            for _ in range(chance.randrange(1, 30))
        ]
        batch = changes(rows, order=number * 100)
        affected = state.affected_rows(batch)
        state.add(batch)
        keys = {key for (key, _), _ in rows}
        before = Counter({row: n for row, n in expected.items() if row[0] in keys and n})
        for row, weight in rows:
            expected[row] += weight
        after = Counter({row: n for row, n in expected.items() if row[0] in keys and n})
        assert count(affected.rows, affected.before.tolist()) == before
        assert count(affected.rows, affected.after.tolist()) == after
    table = state.table()
    assert table is not None
    stored = count(table, table.column(WEIGHT).to_pylist())
    assert stored == Counter({row: n for row, n in expected.items() if n})
    assert table.num_rows == len(stored)


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", range(5))
def test_changes_of_a_join_of_random_changes(seed: int) -> None:
    chance = random.Random(seed)
    state, sides = RowState(), (Counter[Row](), Counter[Row]())
    for number in range(60):
        before = joined(*sides)
        batches = []
        for side in chance.choice(((0,), (1,), (0, 1))):
            rows = [(chance.randrange(6), chance.choice("abc")) for _ in range(chance.randrange(9))]
            held = [row for row, weight in sides[side].items() for _ in range(weight)]
            gone = chance.sample(held, min(len(held), chance.randrange(4)))
            weighted = [*((row, 1) for row in rows), *((row, -1) for row in gone)]
            for row, weight in weighted:
                sides[side][row] += weight
            batches.append(changes(weighted, order=number * 100 + side * 50, side=side))
        batch = pa.concat_tables(batches)
        affected = state.affected_rows(batch, joins=True)
        state.add(batch)
        found = affected.rows.append_column("n", pa.array(affected.before.clip(0)))
        found = found.append_column("m", pa.array(affected.after.clip(0)))
        left, right = (found.filter(pc.equal(found.column(SIDE), side)) for side in (0, 1))
        left_before, left_after = weights(left, "n"), weights(left, "m")
        right_before, right_after = weights(right, "n"), weights(right, "m")
        expected = joined(*sides)
        expected.subtract(before)
        difference = joined(less(left_after, left_before), right_after)
        difference.update(joined(left_before, less(right_after, right_before)))
        assert {k: n for k, n in difference.items() if n} == {
            k: n for k, n in expected.items() if n
        }


def weights(rows: pa.Table, name: str) -> Counter[Row]:
    return count(rows, rows.column(name).to_pylist())


def less(rows: Counter[Row], others: Counter[Row]) -> Counter[Row]:
    """Returns the difference of the weights, which may be negative."""
    difference = rows.copy()
    difference.subtract(others)
    return difference


def joined(left: Counter[Row], right: Counter[Row]) -> Counter[tuple[Row, Row]]:
    """Returns the pairs of rows with the same key."""
    pairs = Counter[tuple[Row, Row]]()
    for row, weight in left.items():
        for other, times in right.items():
            if row[0] == other[0]:
                pairs[row, other] += weight * times
    return pairs


def test_a_join_reads_the_stored_rows_of_the_other_side_only() -> None:
    state = RowState()
    state.add(changes([((1, "auction"), 1)]))
    state.add(changes([((1, "bid"), 1), ((1, "first"), 1), ((2, "bid"), 1)], side=1))
    affected = state.affected_rows(
        changes([((1, "last"), 1), ((1, "first"), -1)], order=10, side=1), joins=True
    )
    assert affected.rows.column("value").to_pylist() == ["auction", "first", "last"]
    assert (affected.before.tolist(), affected.after.tolist()) == ([1, 1, 0], [1, 0, 1])
    affected = state.affected_rows(changes([((1, "auction"), -1)]), joins=True)
    assert sorted(affected.rows.column("value").to_pylist()) == ["auction", "bid", "first"]


@pytest.mark.slow
def test_chunks_are_few_and_hold_each_row_a_bounded_number_of_times() -> None:
    state = RowState()
    for number in range(200):
        state.add(changes([((number * 10 + i, "a"), 1) for i in range(10)], order=number * 10))
    assert state.size == 2000
    assert len(state.chunks) <= 12


def test_equal_rows_keep_the_order_of_the_first_and_the_time_of_the_last() -> None:
    state = RowState()
    state.add(changes([((1, "a"), 1)], order=5, time=100))
    state.add(changes([((1, "a"), 1)], order=9, time=200))
    table = state.table()
    assert table is not None
    assert table.select([WEIGHT, ORDER, TIME]).to_pylist() == [{WEIGHT: 2, ORDER: 5, TIME: 200}]


def test_a_row_without_a_weight_is_no_row() -> None:
    batch = changes([((1, "a"), 1), ((2, "b"), 0)])
    assert consolidate(batch).column("value").to_pylist() == ["a"]
    assert RowState().affected_rows(batch).rows.column("value").to_pylist() == ["a"]


def test_touched_rows_are_in_the_order_of_arrival() -> None:
    state = RowState()
    state.add(changes([((1, "c"), 1), ((1, "a"), 1)], order=1))
    affected = state.affected_rows(changes([((1, "b"), 1), ((1, "c"), -1)], order=10))
    assert affected.rows.column("value").to_pylist() == ["c", "a", "b"]
    assert (affected.before.tolist(), affected.after.tolist()) == ([1, 1, 0], [0, 1, 1])


def test_keys_expire_after_their_newest_row() -> None:
    state = RowState()
    state.add(changes([((1, "old"), 2), ((2, "old"), 1), ((3, "old"), 1)], time=100))
    state.add(changes([((2, "new"), 1)], order=10, time=300))
    arriving = changes([((3, "now"), 1)], order=20, time=400)
    assert state.expired(200, arriving, [1]).num_rows == 0
    assert state.expired(100, arriving, [0]).num_rows == 0
    expired = state.expired(200, arriving, [0])
    assert count(expired, expired.column(WEIGHT).to_pylist()) == {(1, "old"): -2}
    assert expired.schema.equals(arriving.schema)
    state.add(expired)
    assert state.expired(200, arriving, [0]).num_rows == 0
    assert state.size == 3


def test_fields_that_stored_rows_lack_are_null() -> None:
    values = pa.array([{"c0": 1}, None], pa.struct([("c0", pa.int32())]))
    target = pa.schema(
        [("v", pa.struct([("c0", pa.int32()), ("c1", pa.string())])), ("x", pa.int8())]
    )
    rows = with_fields(pa.table({"v": values, "n": [1, 2]}), target)
    assert rows.to_pylist() == [{"v": {"c0": 1, "c1": None}, "n": 1}, {"v": None, "n": 2}]
    assert with_fields(rows, None) is rows
