"""Partial results of panes, against those of single rows."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.windows import pane_rows
from penstock.engine.windows.pane_rows import Kind, PaneRows


def aggregate(
    kind: Kind, values: pa.Array, keys: list[Any], size: int = 2
) -> list[tuple[Any, Any]]:
    """Returns the partial results of rows that arrive in batches of `size`."""
    type_ = pa.int64() if kind == "count" else values.type
    table = pa.table({"k": keys, "v": values})
    function = PaneRows(pa.schema([("k", pa.string()), ("v", type_)]), ["k"], [kind])
    found = [pa.table(batch) for batch in function(iter(table.to_batches(max_chunksize=size)))]
    return [(row["k"], row["v"]) for part in found for row in part.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("count", {("a", 2), ("b", 0), (None, 1)}),
        ("sum", {("a", 5), ("b", None), (None, 7)}),
        ("min", {("a", 1), ("b", None), (None, 7)}),
        ("max", {("a", 4), ("b", None), (None, 7)}),
    ],
    ids=["count", "sum", "min", "max"],
)
def test_rows_of_a_key_become_one_row(kind: Kind, expected: set[Any]) -> None:
    values = pa.array([1, None, None, 4, 7])
    assert set(aggregate(kind, values, ["a", "a", "b", "a", None])) == expected


def test_sums_that_may_overflow_remain_rows() -> None:
    values = pa.array([2**62, 2**62, -(2**62)])
    assert sorted(aggregate("sum", values, ["a", "a", "a"])) == [
        ("a", -(2**62)), ("a", 2**62), ("a", 2**62),
    ]  # fmt: skip


def test_extremes_of_nan_remain_rows() -> None:
    """Spark orders NaN after all numbers, Arrow leaves it out."""
    found = aggregate("max", pa.array([1.0, math.nan]), ["a", "a"])
    assert len(found) == 2
    assert aggregate("sum", pa.array([1.0, 2.0]), ["a", "a"]) == [("a", 3.0)]


def test_chunks_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pane_rows, "_CHUNK", 4)
    keys = [f"k{number % 3}" for number in range(100)]
    totals: dict[str, int] = {}
    found = aggregate("sum", pa.array(range(100)), keys)
    for key, value in found:
        totals[key] = totals.get(key, 0) + value
    assert totals == {f"k{n}": sum(range(n, 100, 3)) for n in range(3)}
    assert len(found) < 60


def test_no_rows_have_no_result() -> None:
    assert aggregate("count", pa.array([], pa.int64()), []) == []
