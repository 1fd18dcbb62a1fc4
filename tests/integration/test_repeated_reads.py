"""Queries of an endless stream that read a source in several places, against DuckDB.

`test_failing_joins.py` restarts a join of a source with itself.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock import app
from penstock.connectors import memory
from penstock.core.errors import PenstockError
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.runtime.dead_letters.store import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1)
TABLES = "".join(
    f"""
CREATE TABLE {name} (id INT, k STRING, x INT, ts TIMESTAMP,
    WATERMARK FOR ts AS ts - INTERVAL '1 second')
WITH (connector = 'files', path = '{name}', format = 'json', 'order' = 'name', max_files = 1,
    watch = true);"""
    for name in "tu"
)
SCRIPT = f"SET name = 'p';\nSET partitions = 1;\n{TABLES}\n"
VIEWS = """
CREATE VIEW tens AS SELECT *, time_bucket(INTERVAL '10 seconds', ts) AS s FROM {t};
CREATE VIEW u_tens AS SELECT *, time_bucket(INTERVAL '10 seconds', ts) AS s FROM u;
CREATE VIEW hops AS SELECT k, s, count(*) AS n FROM (
    SELECT *, time_bucket(INTERVAL '5 seconds', ts) - i * INTERVAL '5 seconds' AS s
    FROM t, range(2) r(i)) GROUP BY k, s;
CREATE VIEW counts AS SELECT k, s, count(*) AS n FROM tens GROUP BY k, s;
CREATE VIEW sums AS SELECT k, s, sum(x) AS m FROM tens WHERE x > 2 GROUP BY k, s;
""".format(t="t")
COUNTS = (
    "SELECT k, tumble(INTERVAL '10 seconds') AS window, count(*) AS n FROM t GROUP BY k, window"
)
SUMS = (
    "SELECT k, tumble(INTERVAL '10 seconds') AS window, sum(x) AS m FROM t WHERE x > 2 "
    "GROUP BY k, window"
)
STARTS = (
    "SELECT k, window.start AS s, window.end AS e, {} FROM t {} GROUP BY k, "
    "tumble(INTERVAL '10 seconds')"
)
HOPS = (
    "SELECT k, count(*) AS n, hop(INTERVAL '5 seconds', INTERVAL '10 seconds') AS window FROM t "
    "GROUP BY k, window"
)
HOP_STARTS = (
    "SELECT k, count(*) AS n, window.start AS s, window.end AS e FROM t "
    "GROUP BY k, hop(INTERVAL '5 seconds', INTERVAL '10 seconds')"
)
LARGEST = "SELECT k, n, s FROM hops h WHERE n >= (SELECT max(n) FROM hops g WHERE g.s = h.s)"
JOINED = "SELECT k, s, n, m FROM counts JOIN sums USING (k, s)"
LEFT_JOINED = "SELECT c.k, c.s, n, m FROM counts c LEFT JOIN sums d ON c.k = d.k AND c.s = d.s"
QUERIES = {
    "the same window": (
        f"SELECT a.k, a.window.start AS s, n, m FROM ({COUNTS}) a JOIN ({SUMS}) b "
        "ON a.window = b.window AND a.k = b.k",
        JOINED,
    ),
    "the same start": (
        f"SELECT a.k, a.window.start AS s, n, m FROM ({COUNTS}) a LEFT JOIN ({SUMS}) b "
        "ON a.window.start = b.window.start AND a.k = b.k",
        LEFT_JOINED,
    ),
    "columns of starts": (
        f"SELECT a.k, a.s, n, m FROM ({STARTS.format('count(*) AS n', '')}) a "
        f"LEFT JOIN ({STARTS.format('sum(x) AS m', 'WHERE x > 2')}) b ON a.s = b.s AND a.k = b.k",
        LEFT_JOINED,
    ),
    "columns of ends": (
        f"SELECT a.k, a.s, n, m FROM ({STARTS.format('count(*) AS n', '')}) a, "
        f"({STARTS.format('sum(x) AS m', 'WHERE x > 2')}) b WHERE a.e = b.e AND a.k = b.k",
        JOINED,
    ),
    "USING": (
        f"SELECT k, window.start AS s, n, m FROM ({COUNTS}) a LEFT JOIN ({SUMS}) b "
        "USING (window, k)",
        "SELECT k, s, n, m FROM counts LEFT JOIN sums USING (k, s)",
    ),
    "USING without the window": (
        f"SELECT k, window.start AS s, n, m FROM ({COUNTS}) a JOIN ({SUMS}) b USING (k)",
        JOINED,
    ),
    "consecutive windows": (
        f"SELECT a.k, a.window.start AS s, a.n, b.n AS m FROM ({COUNTS}) a JOIN ({COUNTS}) b "
        "ON a.window.end = b.window.start AND a.k = b.k",
        "SELECT a.k, a.s, a.n, b.n FROM counts a JOIN counts b "
        "ON a.s + INTERVAL '10 seconds' = b.s AND a.k = b.k",
    ),
    "consecutive windows without JOIN": (
        f"SELECT a.k, a.s, a.n, b.n AS m FROM ({STARTS.format('count(*) AS n', '')}) a, "
        f"({STARTS.format('count(*) AS n', '')}) b WHERE a.e = b.s AND a.k = b.k AND a.n > 0",
        "SELECT a.k, a.s, a.n, b.n FROM counts a JOIN counts b "
        "ON a.s + INTERVAL '10 seconds' = b.s AND a.k = b.k",
    ),
    "three relations": (
        f"SELECT a.k, a.window.start AS s, a.n, b.m, c.n AS o FROM ({COUNTS}) a JOIN ({SUMS}) b "
        f"ON a.k = b.k JOIN ({COUNTS.replace('FROM t', 'FROM u')}) c ON a.k = c.k",
        "SELECT a.k, a.s, a.n, m, c.n FROM counts a JOIN sums b USING (k, s) JOIN "
        "(SELECT k, s, count(*) AS n FROM u_tens GROUP BY k, s) c USING (k, s)",
    ),
    "the largest groups by window": (
        f"SELECT a.k, a.n, a.window.start AS s FROM ({HOPS}) a JOIN (SELECT max(n) AS most, window "
        f"FROM ({HOPS}) GROUP BY window) m ON a.window = m.window AND a.n >= m.most",
        LARGEST,
    ),
    "the largest groups by start and end": (
        f"SELECT a.k, a.n, a.s FROM ({HOP_STARTS}) a JOIN (SELECT max(n) AS most, s, e "
        f"FROM ({HOP_STARTS}) GROUP BY s, e) m ON a.s = m.s AND a.e = m.e AND a.n >= m.most",
        LARGEST,
    ),
    "the largest groups of a table expression": (
        f"WITH c AS ({HOPS}), m AS (SELECT max(n) AS most, window FROM c GROUP BY window) "
        "SELECT c.k, c.n, c.window.start AS s FROM c JOIN m "
        "ON c.window = m.window AND c.n >= m.most",
        LARGEST,
    ),
    "rows near each other": (
        "SELECT a.id AS i, b.id AS j FROM t a LEFT JOIN t b ON a.k = b.k AND a.id < b.id "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5 seconds'",
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.k = b.k AND a.id < b.id "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5 seconds'",
    ),
    "rows and their window": (
        f"SELECT t.id, n FROM t JOIN ({COUNTS}) w ON t.k = w.k AND t.ts >= w.window.start "
        "AND t.ts < w.window.end",
        "SELECT id, n FROM tens JOIN counts USING (k, s)",
    ),
    "a table expression twice": (
        "WITH c AS (SELECT * FROM t WHERE x > 1) SELECT a.id AS i, b.id AS j FROM c a JOIN c b "
        "ON a.k = b.k AND a.id < b.id",
        "WITH c AS (SELECT * FROM t WHERE x > 1) SELECT a.id, b.id FROM c a JOIN c b "
        "ON a.k = b.k AND a.id < b.id",
    ),
    "groups by start": (
        f"SELECT s, max(n) AS m FROM ({STARTS.format('count(*) AS n', '')}) GROUP BY s",
        "SELECT s, max(n) FROM counts GROUP BY s",
    ),
    "distinct starts": (
        f"SELECT DISTINCT k, s FROM ({STARTS.format('count(*) AS n', '')})",
        "SELECT DISTINCT k, s FROM counts",
    ),
    "ranks by start": (
        "SELECT k, s, row_number() OVER (PARTITION BY s ORDER BY n DESC, k NULLS LAST) AS r "
        f"FROM ({STARTS.format('count(*) AS n', '')})",
        "SELECT k, s, row_number() OVER (PARTITION BY s ORDER BY n DESC, k NULLS LAST) FROM counts",
    ),
    "ranks by a named window": (
        f"SELECT k, window.start AS s, rank() OVER w AS r FROM ({COUNTS}) "
        "WINDOW w AS (PARTITION BY window ORDER BY n DESC)",
        "SELECT k, s, rank() OVER (PARTITION BY s ORDER BY n DESC) FROM counts",
    ),
}
INSERTS = """
CREATE TABLE several (k STRING, n BIGINT) WITH (connector = 'memory');
INSERT INTO several SELECT k, count(*) FROM t GROUP BY tumble(INTERVAL '10 seconds'), k;
INSERT INTO several SELECT k, x * 100 FROM t WHERE x > 1;
INSERT INTO several SELECT k, sum(x) FROM t GROUP BY tumble(INTERVAL '20 seconds'), k;
"""
SEVERAL = """
SELECT k, count(*) AS n FROM tens GROUP BY k, s UNION ALL SELECT k, x * 100 FROM t WHERE x > 1
UNION ALL SELECT k, sum(x) FROM t GROUP BY k, time_bucket(INTERVAL '20 seconds', ts)
"""
CLOSING = (999, "closing", 99, BEGIN + timedelta(days=1))
"""The row whose event time closes the windows of all others."""


def make_rows(seed: int) -> list[tuple[Any, ...]]:
    """Returns rows in the order of their times."""
    chance = random.Random(seed)
    times = sorted(BEGIN + timedelta(seconds=chance.randrange(120) / 2) for _ in range(24))
    return [
        (number, chance.choice(("u", "v", "w", None)), chance.choice((1, 2, 3, 5, None)), time)
        for number, time in enumerate(times)
    ]


def put(directory: Path, name: str, number: int, rows: list[tuple[Any, ...]], *bad: str) -> None:
    lines = [
        json.dumps(dict(zip(("id", "k", "x", "ts"), (*row[:3], f"{row[3]}Z"), strict=True)))
        for row in rows
    ]
    path = directory / name / f"{number}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, *bad, ""]))


def run(script: Path, spark: SparkSession) -> None:
    outcome = app.run(script, spark=spark.newSession(), options=app.RunOptions(until="caught_up"))
    assert outcome.errors == {}, outcome.errors


def test_rows_are_the_answer_of_duckdb(tmp_path: Path, penstock_spark: SparkSession) -> None:
    memory.clear()
    rows = {name: make_rows(seed) for seed, name in enumerate("tu")}
    script = tmp_path / "p.sql"
    tables = "".join(
        f"CREATE TABLE out{number} WITH (connector = 'memory') AS {sql};\n"
        for number, (sql, _) in enumerate(QUERIES.values())
    )
    script.write_text(SCRIPT + tables + INSERTS)
    for name, every in rows.items():
        put(tmp_path, name, 0, every[:12], *(["{"] if name == "t" else []))
        put(tmp_path, name, 1, [*every[12:], CLOSING])
    run(script, penstock_spark)
    with duckdb.connect() as connection:
        for name, every in rows.items():
            connection.execute(f"CREATE TABLE {name} (id INT, k TEXT, x INT, ts TIMESTAMP)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", every)
        connection.execute(VIEWS)
        answers = {name: answer for name, (_, answer) in QUERIES.items()} | {"INSERTs": SEVERAL}
        expected = {
            name: Counter(connection.execute(answer).fetchall()) for name, answer in answers.items()
        }
    names = [*(f"out{number}" for number in range(len(QUERIES))), "several"]
    found = dict(zip(answers, map(written, names), strict=True))
    assert all(expected.values())
    assert found == expected
    dead_letters = DeadLetters(tmp_path / ".penstock" / "p" / "dead_letters").read()
    assert dead_letters.num_rows == 1
    for checkpoint in (tmp_path / ".penstock" / "p" / "checkpoints").iterdir():
        assert OffsetLog(checkpoint).end_offsets(0).keys() <= {"t", "u"}


def written(table: str) -> Counter[tuple[Any, ...]]:
    """Returns the rows of a table without those of the closing row."""
    rows = [tuple(map(plain, row.values())) for row in memory.tables[table].to_pylist()]
    closing = {*CLOSING, *(CLOSING[2] * factor for factor in (1, 100))}
    return Counter(row for row in rows if not closing & {*row} and not _is_late(row))


def _is_late(row: tuple[Any, ...]) -> bool:
    return any(isinstance(value, datetime) and value > BEGIN + timedelta(hours=1) for value in row)


def plain(value: Any) -> Any:
    """Returns a value without its time zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


RANKED = f"SELECT k, rank() OVER (PARTITION BY window ORDER BY n) AS r FROM ({COUNTS})"


def test_ranks_and_rows_have_different_batches(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    script = tmp_path / "p.sql"
    script.write_text(
        f"{SCRIPT}CREATE TABLE o (k STRING, n BIGINT) WITH (connector = 'memory'); "
        f"INSERT INTO o {RANKED}; INSERT INTO o SELECT k, x FROM t;"
    )
    with pytest.raises(PenstockError) as caught:
        app.types(app.plan(script), penstock_spark.newSession())
    assert caught.value.code == "different-batches"
    assert 'Write the rows of "o_query" to a sink of their own' in (caught.value.hint or "")
