"""Windowed queries within queries that need complete windows become transforms of their own."""

from __future__ import annotations

import pytest

from penstock.spec.script.lift import lift_windows
from penstock.spec.script.tokens import Text

COUNTS = "SELECT tumble(INTERVAL '1 minute') AS w, k, count(*) AS n FROM e GROUP BY w, k"
BY_SPARK = "SELECT window(at, '1 minute') AS w, k, count(*) AS n FROM e GROUP BY 1, k"


def lifted(query: str) -> tuple[str, list[str]]:
    text, parts = lift_windows(Text(query, 100, 100 + len(query)), Text("out_query", 0, 0))
    assert len(text.value) == len(query)
    for name, part in parts:
        assert part.start == name.start
        assert query[part.start - 100 : part.end - 100].endswith(part.value.split("  ")[-1].strip())
    return plain(text), [plain(part) for _, part in parts]


def plain(text: Text) -> str:
    return " ".join(text.value.split()).replace(" )", ")")


@pytest.mark.parametrize("counts", [COUNTS, BY_SPARK])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, max(n) FROM {} GROUP BY k",
        "SELECT count(*) FROM {}",
        "SELECT DISTINCT k FROM {}",
        "SELECT k FROM {} UNION SELECT k FROM names",
        "SELECT n, name FROM {} c LEFT JOIN names ON c.k = names.k",
        "SELECT k, rank() OVER (PARTITION BY w ORDER BY n) AS r FROM {}",
        "SELECT name FROM names WHERE k IN (SELECT k FROM {})",
        "SELECT n FROM (SELECT k, max(n) AS n FROM {} GROUP BY k) WHERE n > 1",
        "SELECT n FROM (SELECT n FROM {} UNION SELECT n FROM names)",
        "SELECT n FROM (SELECT n FROM (SELECT DISTINCT n FROM {}) JOIN names USING (n))",
        "SELECT max(n) FROM {} GROUP BY date_trunc('hour', w.start)",
        "SELECT date_trunc('hour', w.start) AS h, max(n) FROM {} GROUP BY h",
        "SELECT max(n) FROM {} GROUP BY w.start > now()",
        "SELECT max(n) FROM {} GROUP BY n * 2",
        "SELECT DISTINCT n * 100 AS z FROM {}",
        "WITH m AS (SELECT k, max(n) AS n FROM {} GROUP BY k) SELECT n, count(*) FROM m GROUP BY n",
    ],
)
def test_tables(query: str, counts: str) -> None:
    text, parts = lifted(query.format(f"({counts})"))
    assert text == query.format("out_query_windows")
    assert parts == [counts]


@pytest.mark.parametrize(
    ("query", "text", "part"),
    [
        (
            f"{COUNTS} UNION SELECT w, k, n FROM other",
            "SELECT * FROM out_query_windows UNION SELECT w, k, n FROM other",
            COUNTS,
        ),
        (
            COUNTS.replace("SELECT", "SELECT DISTINCT"),
            "SELECT DISTINCT * FROM out_query_windows",
            COUNTS,
        ),
        (
            f"WITH a AS (WITH b AS ({COUNTS}) SELECT n FROM b) "
            "SELECT n, count(*) FROM a GROUP BY n",
            "WITH a AS (WITH b AS (SELECT * FROM out_query_windows) SELECT n FROM b) "
            "SELECT n, count(*) FROM a GROUP BY n",
            COUNTS,
        ),
        (
            f"SELECT k FROM (WITH b AS ({COUNTS}) SELECT k, max(n) FROM b GROUP BY k)",
            "SELECT k FROM (WITH b AS (SELECT * FROM out_query_windows) "
            "SELECT k, max(n) FROM b GROUP BY k)",
            COUNTS,
        ),
        (
            f"SELECT l, sum(n) FROM (SELECT w.start::DATE AS l, n FROM ({COUNTS})) GROUP BY l",
            "SELECT l, sum(n) FROM out_query_windows GROUP BY l",
            f"SELECT w.start::DATE AS l, n FROM ({COUNTS})",
        ),
        (
            f"SELECT DISTINCT l FROM (SELECT w.start > now() AS l FROM ({COUNTS}))",
            "SELECT DISTINCT l FROM out_query_windows",
            f"SELECT w.start > now() AS l FROM ({COUNTS})",
        ),
        (
            "SELECT k, max(n) FROM (SELECT calendar_window(at, 'day') AS w, k, count(*) AS n "
            "FROM e GROUP BY 1, 2) GROUP BY k",
            "SELECT k, max(n) FROM out_query_windows GROUP BY k",
            "SELECT calendar_window(at, 'day') AS w, k, count(*) AS n FROM e GROUP BY 1, 2",
        ),
    ],
    ids=[
        "UNION",
        "DISTINCT",
        "WITH in WITH",
        "WITH in a table",
        "a date",
        "a comparison",
        "calendar",
    ],
)
def test_other_windowed_queries(query: str, text: str, part: str) -> None:
    assert lifted(query) == (text, [part])


def test_the_outermost_windowed_query() -> None:
    text, parts = lifted(f"SELECT max(n) FROM (SELECT n FROM ({COUNTS}) WHERE n > 1)")
    assert text == "SELECT max(n) FROM out_query_windows"
    assert parts == [f"SELECT n FROM ({COUNTS}) WHERE n > 1"]


def test_table_expressions() -> None:
    """A windowed query keeps the table expressions before it."""
    before = "WITH large AS (SELECT * FROM e WHERE n > 5)"
    counts = COUNTS.replace("FROM e", "FROM large")
    text, parts = lifted(f"{before}, counts AS ({counts}) SELECT k, max(n) FROM counts GROUP BY k")
    final = "SELECT k, max(n) FROM counts GROUP BY k"
    assert text == f"{before}, counts AS (SELECT * FROM out_query_windows) {final}"
    assert parts == [f"{before} {counts}"]
    text, parts = lifted(f"{before} SELECT k, max(n) FROM ({counts}) GROUP BY k")
    assert text == f"{before} SELECT k, max(n) FROM out_query_windows GROUP BY k"
    assert parts == [f"{before} {counts}"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, max(n) FROM e GROUP BY k",
        f"SELECT w, max(n) FROM ({COUNTS}) GROUP BY w",
        f"SELECT s, max(n) FROM (SELECT w.start AS s, n FROM ({COUNTS})) GROUP BY s",
        f"SELECT DISTINCT * FROM ({COUNTS})",
        f"SELECT k, n FROM ({COUNTS}) WHERE n > 1",
        f"SELECT a.n FROM ({COUNTS}) a JOIN ({COUNTS}) b ON a.w = b.w",
        f"SELECT tumble(INTERVAL '1 minute') AS w, max(n) FROM ({COUNTS}) GROUP BY w",
        f"SELECT k, n FROM ({COUNTS}) UNION ALL SELECT k, 1 FROM e",
    ],
)
def test_other_queries_stay(query: str) -> None:
    assert lifted(query) == (query, [])
