"""Conjuncts of a read, on rows and in words."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.sdk import Conjunct
from penstock.sdk.columns.predicates import conjunct_sql, matching

NAN = float("nan")


@pytest.mark.parametrize(
    ("op", "value", "met"),
    [
        ("=", 0.0, [True, True, False, None]),
        ("!=", 0.0, [False, False, True, None]),
        (">", 5.0, [False, False, True, None]),
        (">=", 0.0, [True, True, True, None]),
        ("<", 5.0, [True, True, False, None]),
        ("<=", -1.0, [False, False, False, None]),
        ("null", None, [False, False, False, True]),
        ("notnull", None, [True, True, True, False]),
    ],
)
def test_nan_is_greater_than_any_number(op: str, value: object, met: list[bool | None]) -> None:
    rows = pa.record_batch({"x": pa.array([0.0, -0.0, NAN, None])})
    assert matching(rows, [Conjunct("x", op, value)]).to_pylist() == met


def test_all_must_be_met() -> None:
    rows = pa.record_batch({"n": [1, 2, None], "s": ["a", "a ", "a"]})
    conjuncts = [Conjunct("s", "in", ("a", "b")), Conjunct("n", "<", 9)]
    assert matching(rows, conjuncts).to_pylist() == [True, False, None]


@pytest.mark.parametrize(
    ("conjunct", "text"),
    [
        (Conjunct("n", "=", 3), "n = 3"),
        (Conjunct("b", "=", False), "b = false"),
        (Conjunct("d", "!=", Decimal("1.10")), "d != 1.10"),
        (Conjunct("s", "in", ("it's", "b")), "s IN ('it''s', 'b')"),
        (Conjunct("at", "<", dt.datetime(2024, 1, 2, tzinfo=dt.UTC)), "at < '2024-01-02 00:00:00'"),
        (Conjunct("x", "notnull"), "x IS NOT NULL"),
    ],
)
def test_in_words(conjunct: Conjunct, text: str) -> None:
    assert conjunct_sql(conjunct) == text
