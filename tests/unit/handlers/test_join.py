"""Joins by key and time: anchors, nulls, roles and types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from handler_batches import batch, column, dropped
from hypothesis import given
from hypothesis import strategies as st

from penstock.handlers.errors import HandlerError
from penstock.handlers.join import Join
from penstock.handlers.metadata import group_of, time_column


def joined(tolerance: int, *batches: pa.RecordBatch, on: Any = ("k",)) -> list[list[Any]]:
    (output,) = Join(list(on), tolerance).handle_all(list(batches))
    return [
        list(row)
        for row in zip(*(column(output, name) for name in output.schema.names), strict=True)
    ]


LEFT = batch(time=[100, 105, 110], k=["a", "a", "b"], f1=[1, 2, 3])
RIGHT = batch(time=[102, 111], k=["a", "b"], f2=[1.5, 2.5])


def test_the_joins_of_the_reference() -> None:
    assert joined(3, LEFT, RIGHT) == [
        [100, "a", 1, 1.5], [105, "a", 2, None], [110, "b", 3, 2.5]
    ]  # fmt: skip
    assert joined(5, LEFT, RIGHT) == [[100, "a", 1, 1.5], [110, "b", 3, 2.5]]


def test_the_anchor_does_not_slide() -> None:
    rows = batch(time=[0, 4, 8, 12], k=["a"] * 4, v=[1, 2, 3, 4])
    assert joined(5, rows) == [[0, "a", 1], [8, "a", 3]]
    assert joined(5, batch(time=[12, 0, 8, 4], v=[4, 1, 3, 2]), on=()) == [[0, 1], [8, 3]]


def test_null_is_not_supplied_and_a_key() -> None:
    first = batch(time=[10, 10, 10], k=[None, "null", "a"], v=[None, 1, None])
    second = batch(time=[10, 10], k=[None, "a"], v=[5, 6])
    assert sorted(map(str, joined(0, first, second))) == sorted(
        map(str, [[10, None, 5], [10, "null", 1], [10, "a", 6]])
    )


def test_whole_seconds() -> None:
    rows = batch(unit="ms", time=[10900, 11100, 11900], k=["a"] * 3, v=[1, 2, 3])
    assert joined(0, rows) == [[10900, "a", 1], [11100, "a", 2]]


def test_roles_and_groups_remain() -> None:
    left = batch({"k": "a"}, time=[1], k=["a"], v=[1])
    right = batch({"k": "a"}, time=[1], k=["a"], w=[2])
    (output,) = Join(["k"]).handle_all([left, right])
    assert group_of(output.schema) == {"k": "a"} and time_column(output.schema) == "time"
    (output,) = Join(["k"]).handle_all([left, batch({"k": "b"}, time=[1], k=["b"], w=[2])])
    assert group_of(output.schema) == {}


def test_calls_without_rows() -> None:
    handler = Join(["k"])
    assert handler.handle_all([]) == []
    (output,) = handler.handle(batch(time=[], k=["a"][:0]))
    assert (output.num_rows, output.schema.names) == (0, ["time", "k"])
    (output,) = handler.handle(batch(time=[None, 1], k=["a", "a"]))
    assert column(output, "time") == [1] and dropped(handler) == [([None], "the time is null")]


def test_errors() -> None:
    with pytest.raises(HandlerError, match="Invalid: tolerance must not be negative, found -1"):
        Join(["k"], -1)
    with pytest.raises(HandlerError, match="Key error: Column k is missing in batch 1"):
        joined(0, LEFT, batch(time=[1], v=[1]))
    with pytest.raises(HandlerError, match="Column f1 has type double in batch 1, and int64"):
        joined(0, LEFT, batch(time=[1], k=["a"], f1=[1.5]))
    with pytest.raises(HandlerError, match="NotImplemented"):
        joined(0, batch(time=[1], k=pa.array([1], pa.int32())))


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.none() | st.integers(0, 9))),
       st.integers(0, 6), st.integers(0, 8))  # fmt: skip
def test_a_plain_join_agrees(
    rows: list[tuple[int, int, int | None]], tolerance: int, cut: int
) -> None:
    parts = [
        batch(time=[t for t, _, _ in part], k=pa.array([k for _, k, _ in part], pa.int64()),
              v=pa.array([v for _, _, v in part], pa.int64()))
        for part in (rows[:cut], rows[cut:])
    ]  # fmt: skip
    expected: list[list[Any]] = []
    anchors: dict[int, list[Any]] = {}
    for time, key, value in sorted(rows, key=lambda row: row[0]):
        if key not in anchors or time - anchors[key][0] > tolerance:
            anchors[key] = [time, key, None]
            expected.append(anchors[key])
        if anchors[key][2] is None:
            anchors[key][2] = value
    assert sorted(map(str, joined(tolerance, *parts))) == sorted(map(str, expected))


@pytest.mark.slow
@given(st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 9) | st.none(), st.integers(0, 2))),
                          st.sampled_from("ab")), max_size=6))  # fmt: skip
def test_batches_on_their_own_have_the_rows_of_single_calls(
    calls: list[tuple[list[tuple[int | None, int]], str]],
) -> None:
    parts = [
        batch({"g": group}, time=pa.array([t for t, _ in rows], pa.timestamp("s")),
              k=pa.array([k for _, k in rows], pa.int64()),
              v=pa.array(range(len(rows)), pa.int64()))
        for rows, group in calls
    ]  # fmt: skip
    parts += [part.drop_columns(["v"]) for part in parts[:1]]
    handler = Join(["k"], 2)
    expected = [output for part in parts for output in Join(["k"], 2).handle(part)]
    outputs = handler.handle_each(parts)
    assert len(outputs) == len(parts)
    for output, alone in zip(outputs, expected, strict=True):
        assert output.equals(alone, check_metadata=True)
    rows_without_time = sum(len(times) for times, _ in dropped(handler))
    assert rows_without_time == sum(part["time"].null_count for part in parts)
