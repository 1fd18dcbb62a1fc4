"""Windows over times at the edges of Spark's range."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import app
from penstock.cli.metrics_table import format_counts
from penstock.connectors import memory
from penstock.runtime.dead_letters.store import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  a:
    type: memory
    schema: at TIMESTAMP, v LONG
    watermark: {column: at, delay: 1 hour}
    rows:
      - {at: 0001-01-01T00:00:00Z, v: 1}
      - {at: 1969-12-31T00:00:00Z, v: 2}
      - {at: 1970-01-01T00:00:01Z, v: 3}
      - {at: 2024-01-01T00:00:00Z, v: 4}
      - {at: 8999-12-31T23:59:59Z, v: 5}
      - {at: 9500-01-01T00:00:00Z, v: 6}
transforms:
  w:
    type: sql
    sql: SELECT count(*) AS n, min(v) AS v FROM a GROUP BY window(at, '30 days')
sinks:
  out: {type: memory, from: w, name: edges_of_time}
"""


def test_every_row_is_in_a_window_or_a_dead_letter(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    plan = app.plan(path)
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    assert sorted(memory.tables["edges_of_time"].column("v").to_pylist()) == [3, 4, 5]
    dead_letters = DeadLetters(plan.state / "dead_letters").read()
    assert dead_letters.column("code").to_pylist() == ["event-time-out-of-range"] * 3


LATE = """\
sources:
  a:
    type: files
    path: "*.jsonl"
    format: json
    max_files: 1
    schema: {schema}
    {watermark}
transforms:
  b: {{type: sql, sql: "{sql}"{transform}}}
  w:
    type: sql
    sql: SELECT window.start AS hour, count(*) AS n FROM b GROUP BY window(at, '1 hour')
sinks:
  out: {{type: memory, from: w, name: late_rows}}
"""
VARIANTS = {
    "a column": {
        "schema": "at TIMESTAMP", "watermark": "watermark: {column: at}",
        "sql": "SELECT * FROM a", "transform": "",
    },
    "an expression": {
        "schema": "at_text STRING", "sql": "SELECT * FROM a", "transform": "",
        "watermark": "watermark: {column: at, expression: to_timestamp(at_text)}",
    },
    "a transform": {
        "schema": "at_text STRING", "sql": "SELECT to_timestamp(at_text) AS at FROM a",
        "watermark": "on_error: fail", "transform": ", watermark: {column: at}",
    },
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_late_rows_and_rows_without_event_time_are_counted(
    tmp_path: Path, penstock_spark: SparkSession, variant: str
) -> None:
    """The watermark of the first batch is 10:30, of the second 12:00. The third batch writes the
    window of 10:00, with its row of 10:06. Only the row of 10:05 is late."""
    options = VARIANTS[variant]
    name = "at" if variant == "a column" else "at_text"
    for number, minutes in enumerate((["10:00", "10:30", None], ["12:00"], ["12:10", "10:06"])):
        lines = [json.dumps({name: minute and f"2026-01-01T{minute}:00Z"}) for minute in minutes]
        (tmp_path / f"{number}.jsonl").write_text("\n".join(lines))
    (tmp_path / "3.jsonl").write_text(json.dumps({name: "2026-01-01T10:05:00Z"}))
    (tmp_path / "p.yaml").write_text(LATE.format(**options))
    handle = app.start(tmp_path / "p.yaml", spark=penstock_spark.newSession())
    outcome = handle.wait(60)
    assert outcome is not None and (outcome.ending, outcome.errors) == ("complete", {})
    counts = {row["hour"].hour: row["n"] for row in memory.tables["late_rows"].to_pylist()}
    assert counts == {10: 3, 12: 2}
    numbers = handle.metrics.snapshot()
    assert numbers["late_rows"] == 1
    untimed = {node: flow["without_event_time"] for node, flow in numbers["nodes"].items()}
    timed = "b" if variant == "a transform" else "a"
    assert {node: count for node, count in untimed.items() if count} == {timed: 1}
    assert {"1 late row", "1 row without event time"} <= set(format_counts(numbers))
