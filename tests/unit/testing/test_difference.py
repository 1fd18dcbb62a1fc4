"""Rows that are expected, and rows that came."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.testing.difference import compare

A, B, C = {"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "c", "n": 3}
ROWS = st.lists(st.fixed_dictionaries({"k": st.sampled_from("ab"), "n": st.integers(0, 2)}))


def test_order_counts_only_where_asked() -> None:
    assert not compare([A, B], [B, A], ordered=False)
    assert compare([A, B], [B, A], ordered=True)
    assert not compare([A, B], [A, B], ordered=True)


def test_rows_count_as_often_as_they_come() -> None:
    difference = compare([A, A], [A, A, A], ordered=False)
    assert difference.unexpected == (A,)
    assert compare([A, A], [A], ordered=False).missing == (1,)


def test_columns_that_are_left_out_match_anything() -> None:
    assert not compare([{"k": "a"}, {"n": 1}], [{"k": "b", "n": 1}, A], ordered=False)
    assert not compare([{}, {"k": "a"}], [A, B], ordered=False)


def test_no_matching_is_missed() -> None:
    wanted = [{}, {"n": 1}, {"k": "a", "n": 1}]
    got = [{"k": "a", "n": 1}, {"k": "b", "n": 1}, {"k": "b", "n": 2}]
    assert not compare(wanted, got, ordered=False)


def test_rows_that_are_nearly_alike_are_told_as_one() -> None:
    difference = compare([A, B], [{"k": "a", "n": 7}, C], ordered=False)
    (changed,) = difference.changed
    assert (changed.index, changed.columns) == (0, ("n",))
    assert (difference.missing, difference.unexpected) == ((1,), (C,))


def test_one_row_for_one_row_is_a_change() -> None:
    (changed,) = compare([{"n": 1}], [{"n": 2}], ordered=False).changed
    assert changed.columns == ("n",)


@settings(deadline=None)
@given(ROWS, st.randoms())
def test_any_order_of_the_same_rows_is_alike(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert not compare(rows, shuffled, ordered=False)


def _sorted(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((row["k"], row["n"]) for row in rows)


@settings(deadline=None)
@given(ROWS, ROWS)
def test_all_that_differs_is_told(wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> None:
    difference = compare(wanted, got, ordered=False)
    told = len(difference.missing) + len(difference.changed)
    assert len(wanted) - told == len(got) - len(difference.unexpected) - len(difference.changed)
    assert bool(difference) == (_sorted(wanted) != _sorted(got))
