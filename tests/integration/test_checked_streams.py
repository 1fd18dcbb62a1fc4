"""Rows on which SQL fails above a stateful transform: dead letters, and the query goes on."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from pipelines import Row, Workspace, assert_same_rows, at, dump

pytestmark = pytest.mark.spark

ROWS: list[Row] = [
    {"at": at(20 * n), "id": n, "text": "x" if n % 25 == 24 else str(n % 7), "by": n % 30}
    for n in range(90)
]
WINDOWS = """\
sources:
  raw:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: at TIMESTAMP, id LONG, text STRING, by INT
transforms:
  parsed: {type: sql, sql: "SELECT at, id, CAST(text AS INT) AS n, by FROM raw"}
  kept:
    type: python
    from: parsed
    schema: at TIMESTAMP, id LONG, n INT, by INT
    per: row
    code: |
      def transform(row):
          if row["id"] == 50:
              raise ValueError("fifty")
          return row
    watermark: {column: at, delay: 1 minute}
  positive: {type: filter, from: kept, where: 100 / by > 1}
  counts:
    type: sql
    sql: |
      SELECT window.start AS start, n % 2 AS odd, count(*) AS count, sum(1 DIV n) AS ones
      FROM positive GROUP BY window(at, '5 minutes'), n % 2
sinks:
  out: {type: memory, from: counts}
"""
REASONS = {
    "parsed": "cast-invalid-input",
    "kept": "rejected",
    "positive": "divide-by-zero",
    "counts": "divide-by-zero",
}


def expected_letters(rows: list[Row]) -> dict[int, str]:
    """Returns the failing node of each bad row."""
    bad: dict[int, str] = {}
    for row in rows:
        if row["text"] == "x":
            bad[row["id"]] = "parsed"
        elif row["id"] == 50:
            bad[row["id"]] = "kept"
        elif row["by"] == 0:
            bad[row["id"]] = "positive"
        elif row["text"] == "0":
            bad[row["id"]] = "counts"
    return bad


def expected_counts(rows: list[Row]) -> pl.DataFrame:
    bad = expected_letters(rows)
    good = pl.DataFrame([row for row in rows if row["id"] not in bad])
    number = pl.col("text").cast(pl.Int32)
    return good.group_by(
        pl.col("at").dt.truncate("5m").alias("start"), (number % 2).alias("odd")
    ).agg(pl.len().alias("count"), (1 // number).cast(pl.Int64).sum().alias("ones"))


def found_letters(workspace: Workspace) -> dict[int, str]:
    """Returns the failing nodes by the IDs of their input rows. Checks the other fields."""
    found: dict[int, str] = {}
    for letter in workspace.letters():
        assert (letter["stage"], letter["code"]) == ("transform", REASONS[letter["node"]])
        id_ = json.loads(letter["payload"])["id"]
        assert id_ not in found
        found[id_] = letter["node"]
    return found


def test_bad_rows_above_a_window_are_dead_letters(workspace: Workspace) -> None:
    workspace.put_rows("in", ROWS[:60], files=4)
    assert workspace.run(WINDOWS, until="caught_up").ending == "caught_up"
    assert found_letters(workspace) == expected_letters(ROWS[:60])
    workspace.put("in/4.jsonl", map(dump, ROWS[60:75]))
    workspace.put("in/5.jsonl", map(dump, ROWS[75:]))
    assert workspace.run(WINDOWS).ending == "complete"
    assert found_letters(workspace) == expected_letters(ROWS)
    assert_same_rows(workspace.result(), expected_counts(ROWS))
    messages = {letter["node"]: letter["message"] for letter in workspace.letters()}
    assert messages["parsed"].startswith("The value 'x' of the type \"STRING\" cannot be cast")
    assert messages["positive"] == "Division by zero."
