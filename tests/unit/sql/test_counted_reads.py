"""How often a query reads a relation, also through common table expressions."""

from __future__ import annotations

import pytest

from penstock.sql.facts import parse_facts


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT * FROM s", 1),
        ("SELECT * FROM s JOIN s AS t", 2),
        ("WITH c AS (SELECT * FROM s) SELECT * FROM (SELECT * FROM c WHERE k > 1)", 1),
        ("WITH c AS (SELECT * FROM s), d AS (SELECT * FROM c) SELECT * FROM d", 1),
        ("WITH c AS (SELECT * FROM s) SELECT * FROM c AS a JOIN c AS b", 2),
        ("SELECT * FROM r", 0),
    ],
)
def test_reads_of_a_relation(query: str, count: int) -> None:
    assert parse_facts(query).count_reads("s") == count
