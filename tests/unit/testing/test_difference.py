"""Differences between expected and actual rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.testing.difference import compare_rows

A, B, C = {"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "c", "n": 3}
ROWS = st.lists(st.fixed_dictionaries({"k": st.sampled_from("ab"), "n": st.integers(0, 2)}))


def test_order_is_compared_only_if_ordered() -> None:
    assert not compare_rows([A, B], [B, A], ordered=False)
    assert compare_rows([A, B], [B, A], ordered=True)
    assert not compare_rows([A, B], [A, B], ordered=True)


def test_duplicates_are_counted() -> None:
    difference = compare_rows([A, A], [A, A, A], ordered=False)
    assert difference.unexpected == (A,)
    assert compare_rows([A, A], [A], ordered=False).missing == (1,)


def test_absent_columns_match_anything() -> None:
    assert not compare_rows([{"k": "a"}, {"n": 1}], [{"k": "b", "n": 1}, A], ordered=False)
    assert not compare_rows([{}, {"k": "a"}], [A, B], ordered=False)


def test_the_matching_is_maximal() -> None:
    expected: list[dict[str, Any]] = [{}, {"n": 1}, {"k": "a", "n": 1}]
    actual = [{"k": "a", "n": 1}, {"k": "b", "n": 1}, {"k": "b", "n": 2}]
    assert not compare_rows(expected, actual, ordered=False)


def test_similar_rows_are_a_change() -> None:
    difference = compare_rows([A, B], [{"k": "a", "n": 7}, C], ordered=False)
    (changed,) = difference.changed
    assert (changed.index, changed.columns) == (0, ("n",))
    assert (difference.missing, difference.unexpected) == ((1,), (C,))


def test_a_single_pair_of_rows_is_a_change() -> None:
    (changed,) = compare_rows([{"n": 1}], [{"n": 2}], ordered=False).changed
    assert changed.columns == ("n",)


@pytest.mark.slow
@settings(deadline=None)
@given(ROWS, st.randoms())
def test_the_same_rows_match_in_any_order(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert not compare_rows(rows, shuffled, ordered=False)


def _sorted(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((row["k"], row["n"]) for row in rows)


@pytest.mark.slow
@settings(deadline=None)
@given(ROWS, ROWS)
def test_the_difference_is_complete(
    expected: list[dict[str, Any]], actual: list[dict[str, Any]]
) -> None:
    difference = compare_rows(expected, actual, ordered=False)
    changed = len(difference.changed)
    matched = len(expected) - len(difference.missing) - changed
    assert matched == len(actual) - len(difference.unexpected) - changed
    assert bool(difference) == (_sorted(expected) != _sorted(actual))
