"""Queries that only Spark rejects: the planner reads them without an error of its own."""

from __future__ import annotations

import pytest

from penstock import app

TABLES = """\
CREATE TABLE t (a INT, u INT, at TIMESTAMP, WATERMARK FOR at)
WITH (connector = 'single_file', path = 'in/*.json', format = 'json', type = 'source');
CREATE TABLE o (a INT) WITH (connector = 'blackhole');
"""
TUMBLE = "tumble(INTERVAL '1 minute')"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT t.a JOIN (SELECT u, count(*) AS n FROM t GROUP BY u, {TUMBLE}) b ON t.u = b.u",
        "SELECT session_window() AS x FROM t GROUP BY 1",
        "SELECT session_window() FROM t GROUP BY session_window()",
        f"SELECT LIMIT 1, count(*) FROM t GROUP BY 1, {TUMBLE}",
    ],
)
def test_queries_that_only_spark_rejects(query: str) -> None:
    script = f"{TABLES}CREATE VIEW v AS {query};\nINSERT INTO o SELECT * FROM v;"
    partial, errors = app.script_plan(script)
    assert partial is not None and not errors
