"""An updating pipeline, killed in the midst of batches (see kill_updating.py for all three)."""

from __future__ import annotations

from pathlib import Path

import pytest
from deaths import run_until_killed
from kill_updating import UPDATING, assert_complete, without_streams, write_input
from moments import Change
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

MOMENTS = {
    "between two sinks": Change("*/levels/.penstock/*/ledger.json", "before"),
    "after a state": Change("*_changes/updating/1.json", "after"),
}


def test_tables_after_kills(tmp_path: Path, penstock_spark: SparkSession) -> None:
    orders = write_input(tmp_path, records=60, files=2, pipeline=without_streams())
    file, options = tmp_path / "pipeline.yaml", RunOptions(until="caught_up")
    for name, moment in MOMENTS.items():
        assert run_until_killed(file, moment, penstock_spark, options), f"not killed {name}"
    app.run(file, spark=penstock_spark.newSession(), options=options)
    assert_complete(tmp_path, orders, UPDATING)
