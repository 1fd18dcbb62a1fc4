"""Queries of changes in scripts read windows of other transforms, which are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app

TABLE = """
CREATE TABLE t (k STRING, x INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1 second')
WITH (connector = 'files', path = 't', format = 'json', watch = true);
"""
SINK = (
    "CREATE TABLE out{} WITH (connector = 'files', path = 'o', format = 'debezium_json') AS {};\n"
)
WINDOWS = [
    "tumble(INTERVAL '1 minute')",
    "hop(INTERVAL '1 minute', INTERVAL '2 minutes')",
    "session(INTERVAL '1 minute')",
    "window(at, '1 minute')",
    "calendar_window(at, 'day')",
]
QUERIES = [
    "SELECT k, max(n) AS n FROM {} a GROUP BY k",
    "SELECT k AS window, max(n) AS n FROM {} a GROUP BY window",
    "SELECT window.k, max(n) AS n FROM {} AS window GROUP BY window.k",
    'SELECT "order"."group", max(n) AS n FROM (SELECT k AS "group", n FROM {} a) AS "order" '
    'GROUP BY "order"."group"',
    "SELECT DISTINCT n FROM {} a",
    "SELECT k FROM {} a EXCEPT SELECT k FROM t",
    "SELECT k, n FROM {} a ORDER BY n LIMIT 3",
    "SELECT * FROM (SELECT k, n FROM {} a) PIVOT (max(n) FOR k IN ('a', 'b'))",
    "SELECT k FROM {} a WHERE n = (SELECT max(n) FROM {} b)",
    "SELECT a.k, count(*) AS c FROM {} a JOIN {} b ON a.n = b.n GROUP BY a.k",
    "SELECT a.k, count(*) AS c FROM {} a LEFT JOIN {} b ON a.k = b.k AND a.n < b.n GROUP BY a.k",
    "SELECT k, count(*) AS c FROM (SELECT * FROM {} a LEFT JOIN {} b USING (k, n)) GROUP BY k",
    "SELECT a.k, count(*) AS c FROM {} a JOIN t ON a.k = t.k GROUP BY a.k",
    "WITH r AS (SELECT k, rank() OVER (PARTITION BY k ORDER BY n) AS r FROM {} a) SELECT k FROM r",
    "WITH z AS (SELECT k, n FROM {} a) SELECT n, count(*) AS c FROM z GROUP BY n",
]
OWN = [
    "SELECT k, count(*) AS n, rank() OVER (PARTITION BY {0} ORDER BY count(*)) AS r FROM t "
    "GROUP BY k, {0}",
    "SELECT k FROM (SELECT k, row_number() OVER (ORDER BY sum(x)) AS r FROM t GROUP BY k, {0})",
    "SELECT DISTINCT k, count(*) AS n FROM t GROUP BY k, {0}",
    "SELECT k, count(*) AS n FROM t GROUP BY k, {0} ORDER BY 2 LIMIT 2",
]


@pytest.mark.quick(1)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.partition("(")[0])
def test_no_query_of_changes_computes_windows(tmp_path: Path, window: str) -> None:
    hidden = f"(SELECT k, count(*) AS n FROM t GROUP BY k, {window})"
    selected = f"(SELECT k, {window} AS w, count(*) AS n FROM t GROUP BY k, {window})"
    queries = [query.replace("{}", counts) for query in QUERIES for counts in (hidden, selected)]
    queries += [query.format(window) for query in OWN]
    script = tmp_path / "p.sql"
    script.write_text(TABLE + "".join(SINK.format(*each) for each in enumerate(queries)))
    changes = [node for node in app.plan(script).of("transform") if node.updating]
    assert len(changes) > len(QUERIES)
    assert not [n.name for n in changes if n.relation is not None and n.relation.calls_windows]
