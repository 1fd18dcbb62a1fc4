"""Clauses of user-defined aggregates: the rows that Spark collects for them."""

from __future__ import annotations

import pytest

from penstock.sql.dialect.user_aggregates import collect_rows
from penstock.sql.text.edits import DialectError, Translation
from penstock.sql.user_functions import UserFunctions

FUNCTIONS = UserFunctions(
    names=frozenset({"f", "net", "total"}),
    aggregates=frozenset({"f", "total"}),
    collecting=frozenset({"f"}),
)


def collected(text: str) -> str:
    return collect_rows(Translation.of(text), FUNCTIONS).text


@pytest.mark.parametrize(
    "text",
    ["f(x)", "f(ALL x)", "net(x)", "sum(x) FILTER (WHERE y)", "f(sum(DISTINCT x))", "total(x)"],
)
def test_calls_without_clauses_are_as_they_were(text: str) -> None:
    assert collected(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("F(DISTINCT x, y) AS a", "`f rows`(collect_set(`f row`(x, y))) AS a"),
        (
            "f(x) FILTER (WHERE y OR z)",
            "`f rows`(collect_list(CASE WHEN (y OR z) THEN `f row`(x) END))",
        ),
        ("f() FILTER (WHERE y)", "`f rows`(collect_list(CASE WHEN (y) THEN `f row`() END))"),
        (
            "f(x) IGNORE NULLS",
            "`f rows`(collect_list(CASE WHEN (x) IS NOT NULL THEN `f row`(x) END))",
        ),
        (
            "f(x) FILTER (WHERE y) OVER (PARTITION BY z)",
            "`f rows`(collect_list(CASE WHEN (y) THEN `f row`(x) END) OVER (PARTITION BY z))",
        ),
        ("f(x) OVER w", "`f rows`(collect_list(`f row`(x)) OVER w)"),
        (
            "f(f(x) FILTER (WHERE y)) OVER w",
            "`f rows`(collect_list(`f row`(`f rows`(collect_list(CASE WHEN (y) THEN `f row`(x)"
            " END)))) OVER w)",
        ),
    ],
)
def test_rows_are_collected_by_spark(text: str, expected: str) -> None:
    assert collected(text) == expected


@pytest.mark.parametrize(
    "text", ["f(x ORDER BY y, z DESC)", "f(x) WITHIN GROUP (ORDER BY y, z DESC)"]
)
def test_rows_are_sorted(text: str) -> None:
    found = collected(text)
    rows = "collect_list(struct(y AS _key0, z AS _key1, `f row`(x) AS _value))"
    assert found.startswith(f"`f rows`(transform(array_sort({rows}, (_left, _right) -> CASE")
    assert "WHEN _left._key1 < _right._key1 THEN 1" in found


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("SELECT total(x) OVER w", "total(x) OVER w", "total is a function in SQL"),
        ("SELECT total(DISTINCT x)", "total(DISTINCT x)", "total is a function in SQL"),
        ("SELECT f(DISTINCT x ORDER BY y), 1", "f(DISTINCT x ORDER BY y)", "several places"),
    ],
)
def test_clauses_without_a_meaning(text: str, place: str, message: str) -> None:
    with pytest.raises(DialectError, match=message) as raised:
        collected(text)
    error = raised.value
    assert text[error.start : error.end] == place


@pytest.mark.parametrize(
    "text",
    ["f(x) FILTER (", "f(x) FILTER (WHERE", "f(x) WITHIN GROUP (", "f(x) OVER (", "f(x) OVER"],
)
def test_brackets_that_are_not_closed_are_left_to_spark(text: str) -> None:
    assert collected(text)
