"""The parts of a query that read relations: one walk finds the same as a walk of each part."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.facts import parse_facts
from penstock.sql.reads import count_reads

QUERIES = [
    "SELECT 1",
    "SELECT * FROM s UNION ALL SELECT * FROM t UNION ALL VALUES (1)",
    "SELECT * FROM S JOIN t ON s.k = t.k LEFT JOIN (SELECT * FROM t) AS u ON u.k = t.k",
    "SELECT * FROM t WHERE k IN (SELECT k FROM s) AND EXISTS (SELECT 1 FROM t)",
    "WITH c AS (SELECT * FROM s), d AS (SELECT * FROM c) SELECT * FROM d UNION SELECT * FROM t",
    "WITH c AS (SELECT * FROM t) SELECT * FROM (WITH d AS (SELECT * FROM s) SELECT 1 FROM t), c",
    "WITH RECURSIVE c AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM c) SELECT * FROM c",
    "WITH RECURSIVE c AS (SELECT k FROM s UNION ALL SELECT k + 1 FROM c) SELECT * FROM c JOIN t",
    "WITH s AS (SELECT * FROM t) SELECT * FROM s",
    "SELECT * FROM t, LATERAL (SELECT * FROM s WHERE s.k = t.k) EXCEPT SELECT * FROM t",
    "SELECT * FROM s " + " ".join(f"UNION ALL SELECT {n} FROM t" for n in range(50)),
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("names", ["s", "t", "st", ""])
def test_parts_that_read_streams(query: str, names: str) -> None:
    streams = {*names}
    facts = parse_facts(query)
    assert facts.tree is not None
    is_reading = facts.reading(streams)
    parts = [part for part in facts.tree.walk() if not isinstance(part, exp.CTE | exp.With)]
    for part in parts:
        assert is_reading(part) == any(count_reads(part, facts.ctes)[name] for name in streams)
