"""Joins, groups and subqueries of streams with watermarks that no watermark completes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock import app
from penstock.app import RunOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
name: p
sources:
  a:
    {{type: files, path: a, order: name, max_files: 1, watch: {watch}, format: json, schema: "{a}",
      watermark: {{column: ts}}}}
  b:
    {{type: files, path: b, order: name, max_files: 1, watch: {watch}, format: json, schema: "{b}",
      watermark: {{column: ts}}}}
transforms:
  counts:
    type: sql
    sql: >-
      SELECT date_format(window.start, 'mm') AS minute, window, k, count(*) AS n FROM a
      GROUP BY window(ts, '1 minute'), k
  totals: {{type: sql, sql: "SELECT k, sum(y) AS t FROM b GROUP BY k"}}
  result: {{type: sql, sql: "{sql}"}}
sinks:
  out: {{type: files, from: result, path: out, format: debezium_json}}
"""
A = [[(1, 1, 0), (2, 2, 0)], [(3, 1, 1), (4, 3, 1), (5, 1, 1)], [(9, 90, 59)]]
B = [[(1, 1, 4, 0)], [(2, 3, 8, 0), (3, 1, 2, 1)], [(9, 91, 1, 59)]]
"""Batches of rows; the last ones close the windows of the others."""
SCHEMAS = "id INT, k INT, ts TIMESTAMP", "id INT, k INT, y INT, ts TIMESTAMP"
QUERIES = {
    "windows and rows": "SELECT minute, k, n, y FROM counts LEFT JOIN b USING (k)",
    "windows and groups": "SELECT minute, k, n, t FROM counts FULL JOIN totals USING (k)",
    "rows and groups": "SELECT id, t FROM a LEFT JOIN totals ON a.k = totals.k AND t > 5",
    "semi join": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND y > 3)",
    "anti join": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE y > 7)",
}


def put(directory: Path, batches: list[list[tuple[int, ...]]], columns: str) -> None:
    names = [column.split()[0] for column in columns.split(", ")]
    directory.mkdir()
    for number, rows in enumerate(batches):
        objects = [
            dict(zip(names, (*row[:-1], f"2026-01-01T00:{row[-1]:02}:00Z"), strict=True))
            for row in rows
        ]
        lines = "".join(f"{json.dumps(row)}\n" for row in objects)
        (directory / f"{number}.jsonl").write_text(lines)


def expected(sql: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, batches in (("a", A), ("b", B)):
            columns = "id, k, m" if name == "a" else "id, k, y, m"
            values = ", ".join(map(str, (row for batch in batches for row in batch)))
            connection.execute(f"CREATE VIEW {name} AS FROM (VALUES {values}) v({columns})")
        connection.execute(
            "CREATE VIEW counts AS SELECT format('{:02d}', m) AS minute, k, count(*) AS n FROM a "
            "GROUP BY m, k"
        )
        connection.execute("CREATE VIEW totals AS SELECT k, sum(y) AS t FROM b GROUP BY k")
        return Counter(connection.execute(sql).fetchall())


@pytest.fixture(scope="module", autouse=True)
def one_partition(penstock_spark: SparkSession) -> Iterator[None]:
    """Tasks cost more than rows here."""
    previous = penstock_spark.conf.get("spark.sql.shuffle.partitions")
    penstock_spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    penstock_spark.conf.set("spark.sql.shuffle.partitions", previous or "2")


@pytest.mark.parametrize(
    ("name", "watch"),
    [(name, "false") for name in QUERIES] + [("windows and rows", "true"), ("semi join", "true")],
)
def test_changes_are_the_answer_of_duckdb(
    name: str, watch: str, tmp_path: Path, penstock_spark: SparkSession
) -> None:
    for table, batches, columns in (("a", A, SCHEMAS[0]), ("b", B, SCHEMAS[1])):
        put(tmp_path / table, batches, columns)
    (tmp_path / "p.yaml").write_text(
        PIPELINE.format(watch=watch, a=SCHEMAS[0], b=SCHEMAS[1], sql=QUERIES[name])
    )
    options = RunOptions(until="caught_up") if watch == "true" else RunOptions()
    outcome = app.run(tmp_path / "p.yaml", spark=penstock_spark.newSession(), options=options)
    assert outcome.errors == {}
    folded: Counter[tuple[Any, ...]] = Counter()
    for path in (tmp_path / "out").glob("*.json*"):
        for event in map(json.loads, path.read_text().splitlines()):
            for image, weight in (("before", -1), ("after", 1)):
                if event[image] is not None:
                    folded[tuple(event[image].values())] += weight
    rows = expected(QUERIES[name])
    if watch == "true":  # The last window is open.
        rows = Counter({row: count for row, count in rows.items() if row[:2] != ("59", 90)})
    assert Counter({row: count for row, count in folded.items() if count}) == rows
