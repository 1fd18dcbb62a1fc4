"""The table that changes lead to, and the operations in a difference."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing.difference import compare_rows
from penstock.testing.result_table import result_table

Rows = list[dict[str, Any]]


def rows(*texts: str) -> Rows:
    """Returns rows of a key, a value and an operation, as `k1 u`."""
    return [
        {"k": text[0], "v": None if text[1] == "-" else int(text[1]), "_op": text[3:]}
        for text in texts
    ]


@pytest.mark.parametrize(
    ("changes", "key", "table"),
    [
        (rows("a1 i", "b2 i", "a3 u"), ["k"], [("a", 3), ("b", 2)]),
        (rows("a1 i", "a1 ub", "a3 u"), ["k"], [("a", 3)]),
        (rows("a1 i", "a- d"), ["k"], []),
        (rows("a1 i", "a1 d", "a2 i"), ["k"], [("a", 2)]),
        (rows("a1 i", "b2 i", "a1 ub", "b1 u", "b2 ub", "a2 u"), ["k"], [("a", 2), ("b", 1)]),
        (rows("a1 i", "a1 i", "a1 d"), [], [("a", 1)]),
        (rows("a1 i", "a1 ub", "a2 u"), [], [("a", 2)]),
    ],
)
def test_table_of_changes(changes: Rows, key: list[str], table: list[tuple[str, int]]) -> None:
    found = result_table(changes, key, "_op")
    assert sorted((row["k"], row["v"]) for row in found) == table
    assert all("_op" not in row for row in found)


def test_rows_without_operations_replace_rows_of_their_key() -> None:
    changes = [{"w": 1, "n": 1}, {"w": 2, "n": 1}, {"w": 1, "n": 5}]
    assert result_table(changes, ["w"], None) == [{"w": 1, "n": 5}, {"w": 2, "n": 1}]
    assert result_table(changes, [], None) == changes


def test_a_difference_shows_operations() -> None:
    difference = compare_rows([{"k": "a"}], rows("a1 i", "a1 d"), ordered=False)
    assert difference.columns == ["k"]
    changed = compare_rows([{"k": "a"}], rows("a1 i", "a1 d"), ordered=False, operation="_op")
    assert changed.columns == ["k", "_op"]
