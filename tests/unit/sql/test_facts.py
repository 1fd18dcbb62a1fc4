"""What a SQL text reads and remembers."""

from __future__ import annotations

import pytest

from penstock.sql import facts

KNOWN = frozenset({"late", "flights", "airlines"})


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT window.start, max(a) AS late FROM flights GROUP BY window(t, '1 d')", "flights"),
        ("SELECT window, count(*) AS late FROM flights GROUP BY window(t, '1 day')", "flights"),
        ("SELECT `window`.end AS late FROM flights GROUP BY window(t, '1 h', '5 m')", "flights"),
        ("SELECT session(INTERVAL '1 day') AS window, count(*) AS late FROM flights GROUP BY 1",
         "flights"),
        ("SELECT sum(x) OVER w AS late FROM flights WINDOW w AS (PARTITION BY y)", "flights"),
        ("SELECT 1 AS late FROM flights JOIN Airlines USING (carrier)", "flights airlines"),
    ],
)  # fmt: skip
def test_only_relations_are_read(sql: str, reads: str) -> None:
    assert facts.parse_facts(sql).relations(KNOWN) == set(reads.split())


@pytest.mark.parametrize(
    ("sql", "remembers"),
    [
        ("SELECT window.start FROM late GROUP BY window(t, '1 day')", ("groups",)),
        ("SELECT DISTINCT a FROM late", ("distinct rows",)),
        ("SELECT 1 FROM late JOIN flights USING (id)", ("rows of both sides of a join",)),
    ],
)
def test_the_kind_of_state(sql: str, remembers: tuple[str, ...]) -> None:
    found = facts.parse_facts(sql)
    assert found.stateful(KNOWN) and found.describe_state(KNOWN) == remembers


def test_a_join_with_a_table_remembers_nothing() -> None:
    found = facts.parse_facts("SELECT 1 FROM late JOIN airlines USING (id)")
    assert not found.stateful(frozenset({"late"}))


@pytest.mark.parametrize(
    ("join", "only_joins"),
    [
        ("JOIN", True), ("CROSS JOIN", True), ("LEFT JOIN", False), ("FULL JOIN", False),
        ("LEFT SEMI JOIN", False), ("SEMI JOIN", False), ("LEFT ANTI JOIN", False),
        ("ANTI JOIN", False),
    ],
)  # fmt: skip
def test_inner_joins_are_the_only_state(join: str, only_joins: bool) -> None:
    found = facts.parse_facts(f"SELECT 1 FROM late {join} flights ON late.id = flights.id")
    assert found.only_joins(KNOWN) is only_joins
    grouped = facts.parse_facts(f"SELECT 1 FROM late {join} flights USING (id) GROUP BY id")
    assert not grouped.only_joins(KNOWN)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT * FROM a LIMIT 3", 3),
        ("SELECT * FROM (SELECT b FROM a) WHERE b > 1 FETCH FIRST 5 ROWS ONLY", 5),
        ("SELECT * FROM a", None),
        ("SELECT * FROM a LIMIT 1 + 1", None),
        ("SELECT * FROM a ORDER BY b LIMIT 3", None),
        ("SELECT count(*) FROM a LIMIT 3", None),
        ("SELECT * FROM (SELECT DISTINCT b FROM a) LIMIT 3", None),
        ("SELECT * FROM a JOIN c USING (b) LIMIT 3", None),
        ("SELECT * FROM (SELECT * FROM a LIMIT 3)", None),
        ("SELECT b FROM a UNION ALL SELECT b FROM c LIMIT 3", None),
    ],
)
def test_the_first_rows_of_a_query(sql: str, rows: int | None) -> None:
    assert facts.parse_facts(sql).first_rows == rows
