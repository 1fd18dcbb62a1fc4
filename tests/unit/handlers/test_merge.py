"""Inputs merged by time: one order for every order of arrival."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

from penstock.handlers.merge import Merge
from penstock.handlers.roles import Roles

ROWS = [(0, 1, "a1"), (0, 2, "a2"), (0, 9, "a9"), (1, 1, "b1"), (1, 2, "b2"), (1, 9, "b9")]


def batch(row: tuple[int, int | None, str]) -> pa.RecordBatch:
    number, time, name = row
    times = pa.array([time], pa.timestamp("s"))
    rows = pa.record_batch([times, pa.array([number]), pa.array([name])], ["time", "input", "id"])
    return Roles("time").apply(rows)


def merged(rows: list[tuple[int, int | None, str]]) -> list[str]:
    """Returns the output for rows that arrive one by one, with a restart before each."""
    state, found = Merge(2, "input").save(), list[str]()
    for row in rows:
        handler = Merge(2, "input")
        handler.load(state)
        for output in handler.handle(batch(row)):
            assert output.schema.names == ["time", "id"]
            found += output.column("id").to_pylist()
        state = handler.save()
    return found


@pytest.mark.slow
def test_equal_times_are_in_the_order_of_inputs() -> None:
    orders = [
        [ROWS[index] for index in order]
        for order in permutations(range(6))
        if [i for i in order if i < 3] == [0, 1, 2] and [i for i in order if i > 2] == [3, 4, 5]
    ]
    assert len(orders) == 20
    assert {tuple(merged(rows)) for rows in orders} == {("a1", "b1", "a2", "b2", "a9")}


def test_a_late_row_has_the_place_of_the_row_before() -> None:
    rows = [(0, 5, "a5"), (0, None, "null"), (0, 1, "late"), (1, 4, "b4"), (1, 6, "b6")]
    assert merged([*rows, (0, 7, "a7")]) == ["b4", "a5", "null", "late", "b6"]
