"""Maps of metadata whose keys a message repeats."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.sdk.messages.repeated_keys import unique_keys

TEXTS = pa.map_(pa.string(), pa.string())
LISTS = pa.map_(pa.string(), pa.list_(pa.string()))


@pytest.mark.parametrize(
    ("rows", "last", "array"),
    [
        ([], [], []),
        ([None, []], [None, []], [None, []]),
        ([[("a", "1"), ("b", "2")]], [[("a", "1"), ("b", "2")]], [[("a", ["1"]), ("b", ["2"])]]),
        (
            [[("a", "1"), ("b", "2"), ("a", None)], None, [("a", "3")]],
            [[("a", None), ("b", "2")], None, [("a", "3")]],
            [[("a", ["1", None]), ("b", ["2"])], None, [("a", ["3"])]],
        ),
    ],
)
def test_each_key_is_unique(rows: Any, last: Any, array: Any) -> None:
    maps = pa.array([[("a", "0"), ("a", "0")], *rows], TEXTS)[1:]
    assert unique_keys(maps, TEXTS).to_pylist() == last
    assert unique_keys(maps, LISTS).to_pylist() == array
