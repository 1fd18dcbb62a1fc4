"""Queries that return each row of a table at most once, with some of its columns."""

from __future__ import annotations

import pytest

from penstock.sql.facts import parse_facts
from penstock.sql.kept_columns import group_columns, keeps_columns


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT * FROM u", True),
        ("SELECT *, 1 AS one FROM u WHERE x > 1", True),
        ("SELECT u.id, upper(city) AS city FROM u", True),
        ("SELECT * EXCEPT (id) FROM u", False),
        ("SELECT city FROM u", False),
        ("SELECT score AS id FROM u", False),
        ("SELECT id FROM u AS v(score, id)", False),
        ("SELECT id FROM (SELECT score AS id FROM u)", False),
        ("WITH v AS (SELECT score AS id FROM u) SELECT id FROM v", False),
        ("SELECT id FROM u UNION ALL SELECT id FROM v", False),
        ("SELECT id FROM u JOIN v USING (id)", False),
        ("SELECT id, explode(tags) AS tag FROM u", False),
        ("SELECT id, tag FROM u LATERAL VIEW explode(tags) AS tag", False),
        ("SELECT id FROM", False),
    ],
)
def test_kept_columns(sql: str, kept: bool) -> None:
    assert keeps_columns(parse_facts(sql), ["id"]) is kept


GROUPS = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (GROUPS, ("k",)),
        ("SELECT x % 3 AS r, t.k, count(*) AS n FROM t GROUP BY 1, t.k", ("r", "k")),
        ("SELECT DISTINCT k, x FROM t", ("k", "x")),
        (f"SELECT k AS key, s > 10 AS large FROM ({GROUPS}) WHERE s > 2", ("key",)),
        (f"SELECT * FROM (SELECT q.*, rank() OVER (ORDER BY s) AS r FROM ({GROUPS}) q)", ("k",)),
        (f"WITH g AS ({GROUPS}) SELECT k, s FROM g", ("k",)),
        (f"WITH g AS ({GROUPS}) SELECT * EXCEPT (k) FROM g", ()),
        (f"SELECT upper(k) AS k, s FROM ({GROUPS})", ()),
        (f"SELECT a, b FROM ({GROUPS}) AS g(a, b)", ()),
        (f"SELECT max(s) AS m FROM ({GROUPS})", ()),
        (f"SELECT g.k FROM ({GROUPS}) g JOIN u ON g.k = u.k", ()),
        (f"SELECT k, explode(array(s, 1)) FROM ({GROUPS})", ()),
        ("SELECT upper(k) AS k, count(*) AS n FROM t GROUP BY k", ()),
        ("SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (k)", ()),
        ("SELECT k FROM t", ()),
    ],
)
def test_group_columns(sql: str, columns: tuple[str, ...]) -> None:
    assert group_columns(parse_facts(sql)) == columns
