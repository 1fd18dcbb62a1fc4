"""A static table whose lines are not all good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import app
from penstock.runtime.dead_letters import DeadLetters

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
    letters = DeadLetters(plan.state / "dead_letters").read()
    assert sorted(letters.column("node").to_pylist()) == ["floors", "names"]
