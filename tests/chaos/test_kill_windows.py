"""Sliding windows over messages, killed in the midst of batches, and sessions after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deaths import run_until_killed
from moments import Change
from pyspark.sql import SparkSession

from penstock import app

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

PIPELINE = """\
name: windows
runtime: {state: state}
sources:
  lines:
    type: files
    path: in/*.txt
    order: name
    max_files: 1
    format: text
    schema: {__value__: STRING}
transforms:
  windows:
    type: steps
    from: lines
    window: {size: 3, slide: 2, rest: keep}
    steps:
      - {type: decode, codec: {type: json}}
      - {type: sql, query: "SELECT min(v) AS first, max(v) AS last FROM flow"}
  texts: {type: sql, sql: "SELECT CAST(__payload__ AS STRING) AS text FROM windows"}
sinks:
  out: {type: files, from: texts, path: out, format: text}
"""
MOMENTS = {
    "before the ledger": Change("*/ledger.json", "before", 2),
    "after the ledger": Change("*/ledger.json", "after", 2),
    "before a batch is shown": Change("*/out/part-*", "before"),
}


def test_each_window_is_written_once(tmp_path: Path, penstock_spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    for number in range(7):
        (tmp_path / "in" / f"{number}.txt").write_text(json.dumps({"v": number}) + "\n")
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE)
    for name, moment in MOMENTS.items():
        assert run_until_killed(file, moment, penstock_spark), f"not killed {name}"
    app.run(file, spark=penstock_spark.newSession())
    texts = [line for part in (tmp_path / "out").glob("*") if part.is_file()
             for line in part.read_text().splitlines()]  # fmt: skip
    windows = sorted((json.loads(text) for text in texts), key=lambda each: each["first"])
    assert windows == [{"first": n, "last": n + 2} for n in (0, 2, 4)]
