"""Queries in windows of event time, whose rows equal DuckDB's answer over all rows.

All queries are transforms of one pipeline. The input is a batch of two rows, and batches of two
partitions that are out of order. The last batch, which closes the windows, is that of a new start
with the state of the others.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from datetime import datetime
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import yaml
from pipelines import Row, Workspace, at, dump

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCES = """\
runtime: {partitions: 2}
functions:
  middle:
    kind: aggregate
    args: {values: BIGINT}
    returns: BIGINT
    code: |
      known = sorted(value for value in values if value is not None)
      return known[len(known) // 2] if known else None
  spelled:
    kind: aggregate
    args: {values: BIGINT}
    returns: STRING
    code: |
      return ",".join("-" if value is None else str(value) for value in values)
sources:
  t: &rows
    type: files
    path: rows/*.jsonl
    order: name
    max_files: 2
    schema: id BIGINT, ts TIMESTAMP, k STRING NOT NULL, s STRING, x BIGINT, y DOUBLE, b BOOLEAN
    watermark: {column: ts, delay: 30 seconds}
  u: *rows
"""
VIEWS = """
CREATE TABLE t (id BIGINT, ts TIMESTAMP, k TEXT, s TEXT, x BIGINT, y DOUBLE, b BOOLEAN);
CREATE VIEW minutes AS SELECT *, time_bucket(INTERVAL 1 MINUTE, ts) AS start FROM t;
CREATE VIEW hops AS
  SELECT *, time_bucket(INTERVAL 20 SECONDS, ts) - INTERVAL 20 SECONDS * i AS start
  FROM t, range(3) r(i);
CREATE VIEW gaps AS SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) AS gap FROM t;
CREATE VIEW visits AS SELECT *, count(*) FILTER (WHERE gap >= INTERVAL 9 SECONDS)
  OVER (PARTITION BY k ORDER BY ts) AS visit FROM gaps;
"""
WINDOWED: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("windowed_queries.yaml").read_text("utf-8")
)
NAMES = [*WINDOWED["aggregates"], *WINDOWED["queries"]]


def aggregates(name: str) -> tuple[str, str]:
    """Returns a query with aggregates in windows of a minute, and the query of its answer."""
    mine, answers = ["window.start AS a", "k"], ["start AS a", "k"]
    for column in WINDOWED["aggregates"][name]:
        given, _, answer = column.partition(" | ")
        for clause in ("",) if answer else ("", " FILTER (WHERE b)"):
            mine.append(f"{given}{clause} AS c{len(mine)}")
            answers.append(f"{answer or given}{clause} AS c{len(answers)}")
    return (
        f"SELECT {', '.join(mine)} FROM t GROUP BY tumble(INTERVAL '1 minute'), k",
        f"SELECT {', '.join(answers)} FROM minutes GROUP BY start, k",
    )


def make_rows(count: int, interval: int = 5) -> list[Row]:
    """Returns rows with an interval in seconds, whose times are up to 20 seconds out of order."""
    chance = random.Random(11)
    return [
        {
            "id": number,
            "ts": at(interval * number + chance.randrange(20_000) / 1000),
            "k": chance.choice("abc"),
            "s": chance.choice(["u", "v", "w", None]),
            "x": chance.choice([*range(1, 8), None]),
            "y": chance.choice([0.5, 1.25, 2.0, -3.5, None]),
            "b": chance.choice([True, False, None]),
        }
        for number in range(count)
    ]


def queries(name: str) -> tuple[str, str]:
    """Returns a query, and the query of its answer."""
    if name in WINDOWED["aggregates"]:
        return aggregates(name)
    query = WINDOWED["queries"][name]
    return query["sql"], query["answer"]


def pipeline() -> str:
    """Returns a pipeline with a sink for each query."""
    transforms = "".join(
        f"  q{number}: {{type: sql, sql: {json.dumps(queries(name)[0])}}}\n"
        for number, name in enumerate(NAMES)
    )
    sinks = "".join(f"  out{n}: {{type: memory, from: q{n}}}\n" for n in range(len(NAMES)))
    return f"{SOURCES}transforms:\n{transforms}sinks:\n{sinks}"


Results = dict[str, tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, penstock_spark: SparkSession) -> Results:
    """The rows of each query, and its answer."""
    workspace = Workspace(tmp_path_factory.mktemp("windows"), penstock_spark)
    rows = make_rows(38)
    parts = [rows[at : at + 9] for at in range(2, 38, 9)]
    later_first = itertools.chain.from_iterable(zip(parts[1::2], parts[::2], strict=True))
    files = [[rows[0]], [rows[1]], *later_first]
    for number, each in enumerate(files):
        workspace.put(f"rows/{number:03}.jsonl", map(dump, each))
    workspace.run(pipeline())
    assert workspace.dead_letters() == []
    found = {}
    with duckdb.connect() as connection:
        load(connection, rows)
        for number, name in enumerate(NAMES):
            frame = workspace.result(f"out{number}")
            answer = f"SELECT {', '.join(frame.columns)} FROM ({queries(name)[1]})"
            expected = comparable(connection.execute(answer).fetchall())
            found[name] = comparable(frame.rows()), expected
    return found


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_small_batches_and_of_partitions_out_of_order(results: Results, name: str) -> None:
    found, answer = results[name]
    assert found == answer


def load(connection: duckdb.DuckDBPyConnection, rows: list[Row]) -> None:
    """Creates the table of rows, and the views of their windows."""
    connection.execute(VIEWS)
    values = [[_comparable(value) for value in row.values()] for row in rows]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def comparable(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Returns rows with rounded numbers, times without zone, and NULL for NaN."""
    return Counter(tuple(map(_comparable, row)) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return None if isnan(value) else round(value, 6) + 0.0
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return tuple(value) if isinstance(value, list) else value
