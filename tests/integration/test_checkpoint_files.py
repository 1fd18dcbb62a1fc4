"""Files of the checkpoint of a query on the local disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
runtime: {state: state}
sources:
  rows:
    type: generate
    rows: 5
    fields: {id: sequence, at: timestamp}
    watermark: {column: at, delay: 1 second}
transforms:
  counts: {type: sql, sql: "SELECT count(*) AS n FROM rows GROUP BY window(at, '1 second')"}
sinks:
  out: {type: blackhole, from: counts}
"""


def test_there_are_no_files_of_checksums_of_hadoop(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    plan = app.plan(tmp_path / "p.yaml")
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert not outcome.errors
    checkpoint = plan.state / "checkpoints" / "counts"
    assert (checkpoint / "offsets" / "0").exists()
    assert (checkpoint / "commits" / "0").exists()
    assert any((checkpoint / "state").rglob("*.delta*"))
    assert not list(checkpoint.rglob("*.crc"))
