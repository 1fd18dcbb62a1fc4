"""Ended queries leave no connection to Java and no thread in a process that goes on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import app

pytestmark = pytest.mark.spark

PIPELINE = """
name: short
runtime: {state: %s}
sources:
  numbers: {type: memory, rows: [{id: 1}]}
sinks:
  out: {type: blackhole, from: numbers}
"""


def test_threads_of_ended_queries(tmp_path: Path, penstock_spark: SparkSession) -> None:
    counts = []
    for number in range(3):
        file = tmp_path / f"{number}.yaml"
        file.write_text(PIPELINE % (tmp_path / str(number)))
        options = app.RunOptions(until="caught_up")
        assert app.run(file, spark=penstock_spark.newSession(), options=options).ending
        counts.append(threading.active_count())
    assert counts[2] <= counts[1], counts
