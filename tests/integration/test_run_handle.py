"""Runs in the background: their handles, their history, and control from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import app
from penstock.app import RunOptions
from penstock.control import PipelineControl
from penstock.core.errors import PenstockError

pytestmark = pytest.mark.spark
ENDLESS = """
name: ticks
sources:
  ticks: {type: generate, rate: 200, fields: {id: sequence}}
transforms:
  even: {type: filter, from: ticks, where: id % 2 = 0}
sinks:
  out: {type: files, from: even, path: out, format: json}
"""
MEMORY = """
name: three
sources:
  rows: {type: memory, rows: [{id: 1}, {id: 2}, {id: 3}]}
sinks:
  out: {type: files, from: rows, path: out, format: json}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.yaml"
    path.write_text(ENDLESS)
    return path


def _tapped(control: PipelineControl, node: str) -> list[list[str | None]]:
    """Returns rows of a node by a tap."""
    tap = control.tap(node, 3)
    try:
        return next(each["rows"] for each in tap.follow(60) if each.get("rows"))
    finally:
        tap.close()


def test_a_run_is_observed_previewed_tapped_and_stopped(
    pipeline: Path, penstock_spark: object
) -> None:
    plan = app.plan(pipeline)
    handle = app.start(plan, spark=penstock_spark.newSession())  # type: ignore[attr-defined]
    control = PipelineControl.of(plan)
    try:
        while not handle.metrics.snapshot()["nodes"].get("out", {}).get("rows"):
            assert handle.wait(0.05) is None
        seen = handle.preview(["even"], rows=3)
        assert [row["id"] % 2 for row in seen.tables["even"].to_pylist()] == [0, 0, 0]
        for node in ("ticks", "out"):
            first, *others = [int(row[0] or -1) for row in _tapped(control, node)]
            step = 1 if node == "ticks" else 2
            assert others == [first + step, first + 2 * step]
        owner = control.status().owner
        assert owner is not None and handle.running
    finally:
        handle.stop()
    outcome = handle.wait(60)
    assert outcome is not None and outcome.ending == "stopped" and not handle.running
    written = [
        json.loads(line)["id"] for file in (pipeline.parent / "out").glob("*.jsonl")
        for line in file.open()
    ]  # fmt: skip
    assert sorted(written) == list(range(0, 2 * len(written), 2)), "taps change no row"
    (run,) = control.history()
    assert run.id == handle.id and run.errors == {}
    assert control.status().owner is None
    with pytest.raises(PenstockError, match="no Spark session"):
        handle.preview(["even"])


def test_a_failed_run_keeps_its_error(tmp_path: Path, penstock_spark: object) -> None:
    (tmp_path / "p.yaml").write_text(MEMORY.replace("path: out", "path: blocked/out"))
    (tmp_path / "blocked").write_text("a file, not a directory")
    plan = app.plan(tmp_path / "p.yaml")
    spark = penstock_spark.newSession()  # type: ignore[attr-defined]
    handle = app.start(plan, spark=spark)
    events = [event.name for event in handle.events()]
    try:
        outcome = handle.wait()
        assert outcome is not None and outcome.errors
    except PenstockError:
        pass
    (run,) = PipelineControl.of(plan).history()
    assert run.id == handle.id and run.ending == "failed"
    (errors,) = run.errors.values()
    assert errors[0]["message"]
    assert isinstance(events, list)


def test_a_plan_runs_twice(tmp_path: Path, penstock_spark: object) -> None:
    (tmp_path / "p.yaml").write_text(MEMORY)
    plan = app.plan(tmp_path / "p.yaml")
    for _ in range(2):
        spark = penstock_spark.newSession()  # type: ignore[attr-defined]
        outcome = app.run(plan, spark=spark, options=RunOptions(fresh=True))
        assert outcome.ending == "complete"
    runs = PipelineControl.of(plan).history()
    assert len({run.id for run in runs}) == 2
