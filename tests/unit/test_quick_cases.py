"""The cases of a test that are quick tests."""

from __future__ import annotations

from quick_cases import rest


def test_quick_cases_are_evenly_spread() -> None:
    assert rest(range(6), 2) == [1, 2, 4, 5]
    assert rest("abcd", 1) == ["b", "c", "d"]
    assert rest(range(3), 5) == []
