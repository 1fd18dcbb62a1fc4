"""Joins, groups and subqueries of streams with watermarks that no watermark completes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock import app
from penstock.app import RunOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = """\
  {name}:
    {{type: files, path: {name}, order: name, max_files: 1, watch: {watch}, format: json,
      schema: "{schema}", watermark: {{column: ts}}}}
"""
TRANSFORMS = """\
  counts:
    type: sql
    sql: >-
      SELECT date_format(window.start, 'mm') AS minute, window, k, count(*) AS n FROM a
      GROUP BY window(ts, '1 minute'), k
  totals: {type: sql, sql: "SELECT k, sum(y) AS t FROM b GROUP BY k"}
"""
A = [[(1, 1, 0), (2, 2, 0)], [(3, 1, 1), (4, 3, 1), (5, 1, 1)], [(9, 90, 59)]]
B = [[(1, 1, 4, 0)], [(2, 3, 8, 0), (3, 1, 2, 1)], [(9, 91, 1, 59)]]
"""Batches of rows; the last ones close the windows of the others."""
SCHEMAS = {"a": "id INT, k INT, ts TIMESTAMP", "b": "id INT, k INT, y INT, ts TIMESTAMP"}
QUERIES = {
    "windows_and_rows": "SELECT minute, k, n, y FROM counts LEFT JOIN b USING (k)",
    "windows_and_groups": "SELECT minute, k, n, t FROM counts FULL JOIN totals USING (k)",
    "rows_and_groups": "SELECT id, t FROM a LEFT JOIN totals ON a.k = totals.k AND t > 5",
    "semi_join": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND y > 3)",
    "anti_join": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE y > 7)",
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


@pytest.mark.parametrize(
    ("watch", "names"), [("false", [*QUERIES]), ("true", ["windows_and_rows", "semi_join"])]
)
def test_changes_are_the_answer_of_duckdb(
    watch: str, names: list[str], tmp_path: Path, penstock_spark: SparkSession
) -> None:
    for table, batches in (("a", A), ("b", B)):
        put(tmp_path / table, batches, SCHEMAS[table])
    sources = "".join(SOURCE.format(name=n, watch=watch, schema=s) for n, s in SCHEMAS.items())
    transforms = "".join(f'  {name}: {{type: sql, sql: "{QUERIES[name]}"}}\n' for name in names)
    sinks = "".join(
        f"  {n}_out: {{type: files, from: {n}, path: out/{n}, format: debezium_json}}\n"
        for n in names
    )
    (tmp_path / "p.yaml").write_text(
        f"name: p\nruntime: {{partitions: 1}}\nsources:\n{sources}"
        f"transforms:\n{TRANSFORMS}{transforms}sinks:\n{sinks}"
    )
    options = RunOptions(until="caught_up") if watch == "true" else RunOptions()
    outcome = app.run(tmp_path / "p.yaml", spark=penstock_spark.newSession(), options=options)
    assert outcome.errors == {}
    for name in names:
        rows = expected(QUERIES[name])
        if watch == "true":  # The last window is open.
            rows = Counter({row: count for row, count in rows.items() if row[:2] != ("59", 90)})
        assert folded(tmp_path / "out" / name) == rows, name


def folded(directory: Path) -> Counter[tuple[Any, ...]]:
    """Returns the rows that remain after all changes of a directory."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for path in directory.glob("*.json*"):
        for event in map(json.loads, path.read_text().splitlines()):
            for image, weight in (("before", -1), ("after", 1)):
                if event[image] is not None:
                    rows[tuple(event[image].values())] += weight
    return Counter({row: count for row, count in rows.items() if count})
