"""The timer of sinks: never during a batch, between batches also of a busy query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.connectors.files.sink import FilesSink
from penstock.core.errors import Transient
from penstock.core.log import Silent
from penstock.runtime import periodic_work, sink_timer
from penstock.sdk import BatchId, Receipt

pytestmark = pytest.mark.spark

BUSY = """\
sources:
  numbers: {type: generate, rows: 5, max_records: 1, partitions: 1, sample: [{id: 1}]}
sinks:
  out: {type: files, from: numbers, path: out, roll: {interval: 1h}}
"""


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline whose sink is due at each opportunity."""
    monkeypatch.setattr(sink_timer, "MIN_INTERVAL", 0.0)
    monkeypatch.setattr(periodic_work, "TICK_SECONDS", 0.0)
    file = tmp_path / "busy.yaml"
    file.write_text(BUSY)
    return file


def test_between_batches_only(
    pipeline: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch lasts until the supervisor has looked twice whether the sink is due."""
    seen: list[str] = []
    looks = Semaphore(0)
    finish = FilesSink.commit

    def slow(sink: FilesSink, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        seen.append("begins")
        while looks.acquire(blocking=False):
            pass
        for _ in range(2):
            assert looks.acquire(timeout=60)
        finish(sink, batch, receipts)
        seen.append("ends")

    monkeypatch.setattr(FilesSink, "commit", slow)
    monkeypatch.setattr(FilesSink, "tick", lambda sink: seen.append("tick"))
    options = RunOptions(on_tick=looks.release)
    app.run(app.plan(pipeline), spark=penstock_spark.newSession(), options=options)
    batches = " ".join(seen).replace("begins ends", "batch").split()
    assert set(batches) == {"batch", "tick"}, seen
    assert batches.count("batch") == 5
    between = " ".join(batches).split("batch")[1:-1]
    assert all("tick" in each for each in between), seen


def test_a_tick_that_fails_is_logged_once(
    pipeline: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def tick(sink: FilesSink) -> None:
        tries.append(1)
        raise Transient("the store does not answer", code="no-answer")

    warnings: list[dict[str, Any]] = []

    class Recorder(Silent):
        def warning(self, event: str, **facts: Any) -> None:
            warnings.append({"event": event, **facts})

    monkeypatch.setattr(FilesSink, "tick", tick)
    monkeypatch.setattr(FilesSink, "commit", lambda *given: None)
    options = RunOptions(log=Recorder())
    outcome = app.run(app.plan(pipeline), spark=penstock_spark.newSession(), options=options)
    assert outcome.ending == "complete"
    assert len(tries) > 3
    assert warnings == [
        {
            "event": "tick failed",
            "sink": "out",
            "code": "no-answer",
            "error": "the store does not answer",
        }
    ]
