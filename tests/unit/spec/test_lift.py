"""Windowed queries within queries that need complete windows become transforms of their own."""

from __future__ import annotations

import pytest

from penstock.core.names import derived_name
from penstock.spec.script.lift import lift_windows
from penstock.sql.text.edits import Translation

COUNTS = "SELECT tumble(INTERVAL '1 minute') AS w, k, count(*) AS n FROM e GROUP BY w, k"
BY_SPARK = "SELECT window(at, '1 minute') AS w, k, count(*) AS n FROM e GROUP BY 1, k"


def lifted(query: str) -> tuple[str, list[str]]:
    text, parts = lift_windows(Translation.of(query), "out_query")
    for part in parts:
        assert query[part.start :].startswith(part.query.text[:6])
        assert part.query.text[-7:] in query[part.start : part.end]
    return text.text, [part.query.text for part in parts]


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


@pytest.mark.parametrize(
    ("query", "text", "part"),
    [
        (
            "SELECT hop({}) AS w, k, count(*) n, rank() OVER (PARTITION BY hop({}) ORDER BY "
            "count(*)) AS r FROM e GROUP BY 1, 2",
            "SELECT w, k, n, rank() OVER (PARTITION BY w ORDER BY n) AS r FROM out_query_windows",
            "SELECT hop({}) AS w, k, count(*) n FROM e GROUP BY 1, 2",
        ),
        (
            "SELECT rank() OVER (PARTITION BY window ORDER BY sum(x) FILTER (WHERE x > 1)), k, "
            "count(*) FROM e WHERE x > 0 GROUP BY hop({}), 2 HAVING count(*) > 1",
            "SELECT rank() OVER (PARTITION BY _group_1 ORDER BY _group_2), k, `count(1)` "
            "FROM out_query_windows",
            "SELECT k, count(*) AS `count(1)`, hop({}) AS _group_1, sum(x) FILTER (WHERE x > 1) AS "
            "_group_2 FROM e WHERE x > 0 GROUP BY hop({}), 1 HAVING count(*) > 1",
        ),
        (
            "SELECT n FROM (SELECT DISTINCT sum(count(*)) OVER v AS n FROM e GROUP BY e.k, hop({}) "
            "WINDOW v AS (PARTITION BY e.k ORDER BY n)) WHERE n > 1",
            "SELECT n FROM (SELECT DISTINCT sum(_group_1) OVER v AS n FROM out_query_windows "
            "WINDOW v AS (PARTITION BY _group_2 ORDER BY n)) WHERE n > 1",
            "SELECT count(*) AS _group_1, e.k AS _group_2 FROM e GROUP BY e.k, hop({})",
        ),
        (
            "SELECT k, count(*) AS n FROM e GROUP BY hop({}), k ORDER BY count(*) DESC LIMIT 3",
            "SELECT k, n FROM out_query_windows ORDER BY n DESC LIMIT 3",
            "SELECT k, count(*) AS n FROM e GROUP BY hop({}), k",
        ),
    ],
    ids=["in the select list", "hidden groups", "a named window", "LIMIT"],
)
def test_groups_below_over_and_limit(query: str, text: str, part: str) -> None:
    lengths = "INTERVAL '1 minute', INTERVAL '2 minutes'"
    assert lifted(query.replace("{}", lengths)) == (text, [part.replace("{}", lengths)])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k AS window, max(n) FROM {} GROUP BY window",
        "SELECT window, max(n) FROM (SELECT k AS window, n FROM {}) GROUP BY window",
        "SELECT w.k, max(n) FROM {} AS w GROUP BY w.k",
        "SELECT a, max(b) FROM {} AS t(b, a, c) GROUP BY a",
        "SELECT n FROM {} ORDER BY n LIMIT 3",
        "SELECT * FROM {} PIVOT (max(n) FOR k IN ('a', 'b'))",
        "WITH r AS (SELECT k, rank() OVER (ORDER BY n) AS r FROM {}) SELECT k FROM r WHERE r = 1",
    ],
)
def test_names_that_are_no_windows(query: str) -> None:
    text, parts = lifted(query.format(f"({COUNTS})"))
    inner = "SELECT k AS window, n FROM "
    if inner in query:
        assert parts == [f"{inner}({COUNTS})"]
    else:
        assert (text, parts) == (query.format("out_query_windows"), [COUNTS])


def test_windows_that_a_join_compares_are_selected() -> None:
    counts = "SELECT k, count(*) AS n FROM e GROUP BY k, tumble(INTERVAL '1 minute')"
    query = "SELECT a.n, count(*) FROM {} a JOIN {} b ON a.n = b.n GROUP BY a.n"
    text, parts = lifted(query.format(f"({counts})", f"({counts})"))
    assert text == query.format("out_query_windows", "out_query_windows_2")
    window = "tumble(INTERVAL '1 minute') AS _window FROM e"
    assert parts == [counts.replace(" FROM e", f", {window}")] * 2
    query = "SELECT * FROM {} a LEFT JOIN {} b USING (k)"
    _, parts = lifted(query.format(f"({counts})", f"({counts})"))
    assert parts == [counts] * 2


def test_names_may_be_longer_than_queries() -> None:
    short = "SELECT max(x) FROM (SELECT x FROM e GROUP BY x, hop(1, 2))"
    for length in (50, 60):
        text, parts = lift_windows(Translation.of(short), "o" * length)
        assert text.text == f"SELECT max(x) FROM {parts[0].name}"
        assert parts[0].name.endswith("_windows") and len(parts[0].name) <= 63
    assert [short[part.start : part.end] for part in parts] == [short[20:-1]]


def test_names_derived_from_long_names() -> None:
    assert derived_name("orders", "_query") == "orders_query"
    names = {derived_name("o" * length, "_query") for length in range(50, 64)}
    assert len(names) == 14 and max(map(len, names)) == 63


def test_a_bracket_that_is_not_closed_is_left_to_spark() -> None:
    counts = "SELECT k, count(*) FROM e GROUP BY k, tumble(INTERVAL '1 minute')"
    for query in (
        f"SELECT max(k) FROM ({counts}",
        f"SELECT max(k) FROM (SELECT k, rank() OVER (ORDER BY k FROM ({counts})) WHERE k < 2",
    ):
        assert lift_windows(Translation.of(query), "out")[1] == []


@pytest.mark.parametrize(
    ("items", "text", "part"),
    [
        (
            "rank() OVER (PARTITION BY w ORDER BY middle(p) DESC) AS r",
            "rank() OVER (PARTITION BY w ORDER BY _group_1 DESC) AS r",
            "middle(p) AS _group_1",
        ),
        (
            "sum(middle(p)) OVER (PARTITION BY w) AS r",
            "sum(_group_1) OVER (PARTITION BY w) AS r",
            "middle(p) AS _group_1",
        ),
        (
            "middle(sum(p)) OVER (PARTITION BY k) AS r",
            "middle(_group_1) OVER (PARTITION BY k) AS r",
            "sum(p) AS _group_1",
        ),
        (
            "lag(coalesce(middle(DISTINCT e.p, k) FILTER (WHERE p > 0), 0)) OVER (ORDER BY k) AS r",
            "lag(coalesce(_group_1, 0)) OVER (ORDER BY k) AS r",
            "middle(DISTINCT e.p, k) FILTER (WHERE p > 0) AS _group_1",
        ),
        (
            "rank() OVER (PARTITION BY hour(w.start), f(k), cast(k AS STRING) ORDER BY "
            "CASE WHEN k IN (1, 2) THEN middle(p + 1) END) AS r",
            "rank() OVER (PARTITION BY hour(w.start), f(k), cast(k AS STRING) ORDER BY "
            "CASE WHEN k IN (1, 2) THEN _group_1 END) AS r",
            "middle(p + 1) AS _group_1",
        ),
    ],
)
def test_aggregates_of_the_user_beside_over(items: str, text: str, part: str) -> None:
    head = "SELECT tumble(INTERVAL '1 minute') AS w, k"
    assert lifted(f"{head}, {items} FROM e GROUP BY w, k") == (
        f"SELECT w, k, {text} FROM out_query_windows",
        [f"{head}, {part} FROM e GROUP BY w, k"],
    )
