"""A full disk stops the pipeline with its name; with room made, the next run goes on."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.core.errors import StateError
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.runtime.outcome import Outcome

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

PIPELINE = """\
name: counting
sources:
  numbers: {type: generate, rate: 1000, fields: {id: sequence}}
sinks:
  out: {type: files, from: numbers, path: out}
runtime: {state: disk, trigger: 50ms}
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"only root can make a small disk: {error}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_state_directory(disk: Path, penstock_spark: SparkSession) -> None:
    file = disk.parent / "pipeline.yaml"
    file.write_text(PIPELINE)
    assert _ending(file, penstock_spark) == "disk-full"
    subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
    before = len(_ids(disk.parent))
    assert _ending(file, penstock_spark, until=before + 500) == "stopped"
    found = _ids(disk.parent)
    assert len(found) > before
    assert found == list(range(found[0], found[0] + len(found)))


def _ending(file: Path, spark: SparkSession, until: int | None = None) -> str:
    """How a run ends: by the code of its error, or because `until` rows are there."""

    def watch(plan: Plan, metrics: Metrics) -> None:
        if until is not None:
            threading.Thread(target=_stop, args=(plan, until), daemon=True).start()

    options = app.RunOptions(on_start=watch)
    try:
        outcome: Outcome = app.run(file, spark=spark.newSession(), options=options)
    except StateError as error:
        return error.code
    return next((error.code for error in outcome.errors.values()), outcome.ending)


def _stop(plan: Plan, rows: int) -> None:
    done = threading.Event()
    while len(_ids(plan.state.parent.parent)) < rows:
        done.wait(0.1)
    (plan.state / "stop").touch()


def _ids(root: Path) -> list[int]:
    lines = (line for file in (root / "out").glob("*.jsonl") for line in file.open())
    return sorted(json.loads(line)["id"] for line in lines)
