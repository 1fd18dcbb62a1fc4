"""A static table whose lines are not all good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import app
from penstock.runtime.dead_letters.store import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  readings:
    type: memory
    schema: sensor STRING, at TIMESTAMP
    rows: [{sensor: a, at: 2024-01-01T10:00:00Z}]
    watermark: {column: at}
  names: {type: files, path: names.csv, schema: "sensor STRING, room INT", static: true}
  floors: {type: files, path: floors.csv, schema: "room INT, floor INT", static: true}
transforms:
  counted:
    type: sql
    sql: |
      SELECT floor, count(*) AS n FROM readings JOIN names USING (sensor) JOIN floors USING (room)
      GROUP BY window(at, '1 hour'), floor
sinks:
  out: {type: files, from: counted, path: out, format: json}
"""
UPDATING = """\
sources:
  readings:
    {type: files, path: "in/*.jsonl", order: name, watch: true, schema: "sensor STRING, x INT"}
  names: {type: files, path: names.csv, schema: "sensor STRING, room INT", static: true}
transforms:
  sums:
    type: sql
    sql: |
      SELECT sensor, n FROM (
        SELECT sensor, sum(n) AS n FROM (
          SELECT sensor, 1 AS n FROM readings UNION ALL SELECT sensor, 10 AS n FROM names
          UNION ALL SELECT sensor, 100 AS n FROM names LEFT ANTI JOIN readings USING (sensor)
        ) GROUP BY sensor
      ) WHERE n > 1
sinks:
  out: {type: files, from: sums, path: out, format: debezium_json}
"""

CHANGES = """\
sources:
  readings:
    {type: files, path: "in/*.jsonl", order: name, watch: true, operation_column: op,
     primary_key: id, schema: "id INT, sensor STRING, op STRING"}
  names: {type: files, path: names.csv, schema: "sensor STRING, room INT", static: true}
transforms:
  counts:
    type: sql
    sql: SELECT room, count(*) AS n FROM readings JOIN names USING (sensor) GROUP BY room
sinks:
  out: {type: files, from: counts, path: out, format: debezium_json}
"""


def test_bad_lines_are_dead_letters_once(tmp_path: Path, penstock_spark: SparkSession) -> None:
    (tmp_path / "names.csv").write_text("sensor,room\na,1\nb,cellar\n")
    (tmp_path / "floors.csv").write_text("room,floor\n1,7\ntwo,2\n")
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    (written,) = (tmp_path / "out").glob("*.json*")
    assert json.loads(written.read_text()) == {"floor": 7, "n": 1}
    dead_letters = DeadLetters(plan.state / "dead_letters").read()
    assert sorted(dead_letters.column("node").to_pylist()) == ["floors", "names"]


def test_an_updating_query_keeps_the_rows_of_its_first_batch(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(UPDATING)
    (tmp_path / "in").mkdir()
    runs = (("a,1\nb,2\n", ["a", "c"]), ("a,1\nd,4\n", ["b", "c"]))
    for number, (names, sensors) in enumerate(runs):
        (tmp_path / "names.csv").write_text(f"sensor,room\n{names}")
        rows = [json.dumps({"sensor": sensor, "x": 1}) for sensor in sensors]
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(rows))
        options = app.RunOptions(until="caught_up")
        outcome = app.run(path, spark=penstock_spark.newSession(), options=options)
        assert outcome.errors == {}
    lines = [
        json.loads(line)
        for file in sorted((tmp_path / "out").glob("part-*"))
        for line in file.read_text().splitlines()
    ]
    changes = sorted((line["op"], *(line["after"] or line["before"]).values()) for line in lines)
    assert changes == [("c", "a", 11), ("c", "b", 110), ("c", "c", 2), ("u", "b", 11)]


def test_a_row_is_taken_back_with_the_row_of_the_table_that_it_was_joined_with(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(CHANGES)
    (tmp_path / "in").mkdir()
    runs = (
        ("a,1\nb,2\n", [{"id": 1, "sensor": "a", "op": "i"}, {"id": 2, "sensor": "b", "op": "i"}]),
        ("a,2\nb,2\n", [{"id": 1, "sensor": "a", "op": "d"}, {"id": 3, "sensor": "a", "op": "i"}]),
        ("b,2\n", [{"id": 3, "sensor": "a", "op": "d"}]),
    )
    for number, (names, rows) in enumerate(runs):
        (tmp_path / "names.csv").write_text(f"sensor,room\n{names}")
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        options = app.RunOptions(until="caught_up")
        outcome = app.run(path, spark=penstock_spark.newSession(), options=options)
        assert outcome.errors == {}
    lines = [
        json.loads(line)
        for file in sorted((tmp_path / "out").glob("part-*"))
        for line in file.read_text().splitlines()
    ]
    changes = sorted((line["op"], *(line["after"] or line["before"]).values()) for line in lines)
    assert changes == [("c", 1, 1), ("c", 2, 1), ("d", 1, 1)]
