"""Looking at what flows at nodes changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import app
from penstock.core.errors import PlanError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
name: looked_at
sources:
  readings:
    type: files
    path: in/*.csv
    after_read: delete
    schema: sensor STRING, value INT, at TIMESTAMP
    watermark: {column: at, delay: 1 hour}
  names: {type: files, path: names.csv, schema: "sensor STRING, name STRING", static: true}
transforms:
  named:
    type: sql
    sql: SELECT name, 1 / value AS share, at FROM readings JOIN names USING (sensor)
  hourly:
    type: sql
    sql: SELECT name, count(*) AS n FROM named GROUP BY window(at, '1 hour'), name
sinks:
  out: {type: files, from: hourly, path: out, format: json}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    lines = [f"a,{n},2024-01-01T10:{n:02}:00Z" for n in range(20)]
    header = "sensor,value,at"
    (tmp_path / "in" / "1.csv").write_text("\n".join([header, *lines, "a,x,2024-01-01"]) + "\n")
    (tmp_path / "names.csv").write_text("sensor,name\na,attic\n")
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE)
    return path


def test_nothing_is_touched(pipeline: Path, penstock_spark: SparkSession) -> None:
    """Records on which a source or SQL fails are dead letters."""
    plan = app.plan(pipeline)
    before = sorted(path for path in pipeline.parent.rglob("*"))
    nodes = ["readings", "names", "named", "hourly", "out"]
    seen = app.preview(plan, nodes, rows=50, spark=penstock_spark)
    assert seen.error is None
    assert seen.tables["readings"].num_rows == 20
    assert seen.tables["names"].to_pylist() == [{"sensor": "a", "name": "attic"}]
    assert seen.tables["named"].num_rows == 19
    assert seen.tables["hourly"].to_pylist() == [{"name": "attic", "n": 19}]
    assert seen.tables["out"].to_pylist() == [{"name": "attic", "n": 19}]
    letters = {(each["node"], each["code"]) for each in seen.dead_letters.to_pylist()}
    assert letters == {("readings", "wrong-type"), ("named", "divide-by-zero")}
    assert sorted(path for path in pipeline.parent.rglob("*")) == before


def test_no_rows_have_columns(pipeline: Path, penstock_spark: SparkSession) -> None:
    (pipeline.parent / "in" / "1.csv").write_text("sensor,value,at\n")
    seen = app.preview(app.plan(pipeline), ["hourly"], spark=penstock_spark)
    assert seen.tables["hourly"].column_names == ["name", "n"]
    assert seen.tables["hourly"].num_rows == 0


def test_an_unknown_node_is_an_error(pipeline: Path, penstock_spark: SparkSession) -> None:
    with pytest.raises(PlanError) as caught:
        app.preview(app.plan(pipeline), ["hourli"], spark=penstock_spark)
    assert caught.value.hint == 'did you mean "hourly"?'


def test_a_few_rows_of_an_input_without_end(tmp_path: Path, penstock_spark: SparkSession) -> None:
    path = tmp_path / "endless.yaml"
    path.write_text(
        "sources:\n  ticks: {type: generate, rate: 50, fields: {n: sequence}}\n"
        "transforms:\n  steps: {type: sql, sql: SELECT n + 1 AS m FROM ticks}\n"
        "sinks:\n  out: {type: blackhole, from: steps}\n"
    )
    seen = app.preview(app.plan(path), ["ticks", "steps"], rows=5, spark=penstock_spark)
    assert seen.error is None
    assert [seen.tables[name].num_rows for name in ("ticks", "steps")] == [5, 5]
