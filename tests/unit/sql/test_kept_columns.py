"""Queries that return each row of a table at most once, with some of its columns."""

from __future__ import annotations

import pytest

from penstock.sql.facts import parse_facts
from penstock.sql.kept_columns import keeps_columns


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
