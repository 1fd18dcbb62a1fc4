"""Queries in windows of event time, whose rows equal DuckDB's answer over all rows.

The input is read with a restart in its middle: batches of one or two rows, and batches of two
partitions that are out of order.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from datetime import datetime
from math import isnan
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from pipelines import Row, Workspace, at, dump

pytestmark = pytest.mark.spark

PIPELINE = """\
runtime: {{partitions: 3}}
functions:
  middle:
    kind: aggregate
    args: {{values: BIGINT}}
    returns: BIGINT
    code: |
      known = sorted(value for value in values if value is not None)
      return known[len(known) // 2] if known else None
  spelled:
    kind: aggregate
    args: {{values: BIGINT}}
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
    watermark: {{column: ts, delay: 30 seconds}}
{second}
transforms:
  result:
    type: sql
    sql: |
      {sql}
sinks:
  out: {{type: memory, from: result}}
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


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_small_batches_and_of_partitions_out_of_order(
    workspace: Workspace, name: str
) -> None:
    rows = make_rows(41)
    single, parts = [[row] for row in rows[:5]], [rows[at : at + 6] for at in range(5, 41, 6)]
    later_first = itertools.chain.from_iterable(zip(parts[1::2], parts[::2], strict=True))
    check(workspace, name, [*single, *later_first])


def check(workspace: Workspace, name: str, files: list[list[Row]]) -> None:
    """Compares the rows of a query with its answer. The run is restarted in its middle."""
    sql, answer = (
        WINDOWED["queries"][name].values() if name in WINDOWED["queries"] else aggregates(name)
    )
    text = PIPELINE.format(sql=sql, second="  u: *rows" if " u " in sql else "")
    for number, rows in enumerate(files):
        if number == len(files) // 2:
            workspace.run(text, until="caught_up")
        workspace.put(f"rows/{number:03}.jsonl", map(dump, rows))
    workspace.run(text)
    found = workspace.result()
    all_rows = [row for rows in files for row in rows]
    query = f"SELECT {', '.join(found.columns)} FROM ({answer})"
    assert comparable(found.rows()) == expected(all_rows, query)
    assert workspace.dead_letters() == []


def expected(rows: list[Row], sql: str) -> Counter[tuple[Any, ...]]:
    """Returns DuckDB's answer over all rows."""
    with duckdb.connect() as connection:
        connection.execute(VIEWS)
        values = [[_comparable(value) for value in row.values()] for row in rows]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        return comparable(connection.execute(sql).fetchall())


def comparable(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Returns rows with rounded numbers, times without zone, and NULL for NaN."""
    return Counter(tuple(map(_comparable, row)) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return None if isnan(value) else round(value, 6) + 0.0
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return tuple(value) if isinstance(value, list) else value
