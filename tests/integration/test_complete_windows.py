"""Updating queries over windows in subqueries of a script count complete windows only."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from test_repeated_reads import (
    CLOSING,
    COUNTS,
    SCRIPT,
    STARTS,
    SUMS,
    VIEWS,
    make_rows,
    plain,
    put,
    run,
)

from penstock.connectors import memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STARTED = STARTS.format("count(*) AS n", "")
HOURS = f"SELECT date_trunc('hour', s) AS h, max(n) AS n FROM ({STARTED}) GROUP BY 1"
HOURS_OF_COUNTS = "SELECT date_trunc('hour', s) AS h, max(n) AS n FROM counts GROUP BY 1"
WINDOW = "tumble(INTERVAL '10 seconds')"
HIDDEN = f"SELECT k, count(*) AS n FROM t GROUP BY k, {WINDOW}"
LARGEST = f"FROM ({COUNTS}) a JOIN ({HOURS}) b ON a.n = b.n"
QUERIES = {
    "a condition above groups": (f"SELECT h, n FROM ({HOURS}) WHERE n > 0", HOURS_OF_COUNTS),
    "an expression of the start": (
        f"SELECT date_trunc('hour', s) AS h, max(n) AS n FROM ({STARTED}) "
        "GROUP BY date_trunc('hour', s)",
        HOURS_OF_COUNTS,
    ),
    "groups of groups": (
        f"SELECT n, count(*) AS c FROM ({HOURS}) GROUP BY n",
        f"SELECT n, count(*) FROM ({HOURS_OF_COUNTS}) GROUP BY n",
    ),
    "a table expression": (
        f"WITH h AS ({HOURS}) SELECT n, count(*) AS c FROM h GROUP BY n",
        f"SELECT n, count(*) FROM ({HOURS_OF_COUNTS}) GROUP BY n",
    ),
    "a join with groups": (
        f"SELECT a.n, count(*) AS c {LARGEST} GROUP BY 1",
        f"SELECT a.n, count(*) FROM counts a JOIN ({HOURS_OF_COUNTS}) b ON a.n = b.n GROUP BY 1",
    ),
    "a join in a subquery": (
        f"SELECT n, count(*) AS c FROM (SELECT a.n {LARGEST}) GROUP BY n",
        f"SELECT a.n, count(*) FROM counts a JOIN ({HOURS_OF_COUNTS}) b ON a.n = b.n GROUP BY 1",
    ),
    "an alias of an expression of the start": (
        f"SELECT l, sum(n) AS c FROM (SELECT date_trunc('hour', s) AS l, n FROM ({STARTED})) "
        "GROUP BY l",
        "SELECT date_trunc('hour', s), sum(n) FROM counts GROUP BY 1",
    ),
    "a comparison of the start": (
        f"SELECT s > TIMESTAMP '2026-01-01 12:00:00' AS l, sum(n) AS c FROM ({STARTED}) GROUP BY "
        "s > TIMESTAMP '2026-01-01 12:00:00'",
        "SELECT s > TIMESTAMP '2026-01-01 12:00:00', sum(n) FROM counts GROUP BY 1",
    ),
    "a table expression within another": (
        f"WITH a AS (WITH b AS ({STARTED}) SELECT k, n FROM b) SELECT n, count(*) AS c FROM a "
        "GROUP BY n",
        "SELECT n, count(*) FROM counts GROUP BY n",
    ),
    "UNION": (
        f"SELECT n, count(*) AS c FROM (SELECT n FROM ({STARTED}) UNION SELECT m FROM ({SUMS})) "
        "GROUP BY n",
        "SELECT n, count(*) FROM (SELECT n FROM counts UNION SELECT m FROM sums) GROUP BY n",
    ),
    "an alias that is no window": (
        f"SELECT k AS window, max(n) AS n FROM ({STARTED}) GROUP BY window",
        "SELECT k, max(n) FROM counts GROUP BY k",
    ),
    "a join of windows that are not selected": (
        f"SELECT a.n, count(*) AS c FROM ({HIDDEN}) a JOIN ({HIDDEN}) b ON a.n = b.n GROUP BY a.n",
        "SELECT a.n, count(*) FROM counts a JOIN counts b ON a.n = b.n AND a.s = b.s GROUP BY 1",
    ),
}
"""Queries, and their answers by DuckDB."""
FINAL = {
    "OVER in a windowed query": (
        f"SELECT k, count(*) AS n, rank() OVER (PARTITION BY {WINDOW} ORDER BY count(*) DESC) AS r "
        f"FROM t GROUP BY {WINDOW}, k HAVING count(*) > 0",
        "SELECT k, n, rank() OVER (PARTITION BY s ORDER BY n DESC) FROM counts",
    ),
}
"""Queries whose rows are final."""
OUT = "o" * 55
MODE = ", mode = 'upsert'"


def test_rows_of_open_windows_are_not_counted(tmp_path: Path, penstock_spark: SparkSession) -> None:
    memory.clear()
    rows = make_rows(0)
    script = tmp_path / "p.sql"
    queries = QUERIES | FINAL
    tables = "".join(
        f"CREATE TABLE {OUT}{number} WITH (connector = 'memory'{MODE if name in QUERIES else ''}) "
        f"AS {sql};\n"
        for number, (name, (sql, _)) in enumerate(queries.items())
    )
    script.write_text(SCRIPT + tables)
    put(tmp_path, "t", 0, rows)
    put(tmp_path, "t", 1, [CLOSING])
    run(script, penstock_spark)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (id INT, k TEXT, x INT, ts TIMESTAMP)")
        connection.execute("CREATE TABLE u AS FROM t")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.execute(VIEWS)
        expected = {
            name: Counter(connection.execute(answer).fetchall())
            for name, (_, answer) in queries.items()
        }
    found = {
        name: Counter(
            tuple(map(plain, row.values())) for row in memory.tables[f"{OUT}{number}"].to_pylist()
        )
        for number, name in enumerate(queries)
    }
    assert found == expected
