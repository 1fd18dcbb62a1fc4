"""A state restored from an old backup: rows are never skipped in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.connectors import memory
from penstock.engine.checkpoints.offset_log import last_number
from penstock.runtime.outcome import Outcome

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

PIPELINE = """\
name: restored
sources:
  orders: {type: files, path: "in/*.jsonl", order: name, max_files: 1, schema: id LONG}
sinks:
  out: {type: files, from: orders, path: out}
"""
COPY = """\
  copies: {type: files, path: "in/*.jsonl", order: name, max_files: 1, schema: id LONG}
sinks:
  kept: {type: memory, from: copies, name: restored}
"""
"""Another query of the same input. The contract tests repeated batches of each sink."""


class Place:
    """A pipeline that writes a file of its input in each batch."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self._spark = root, spark
        (root / "in").mkdir()
        (root / "pipeline.yaml").write_text(PIPELINE)

    @property
    def state(self) -> Path:
        return self.root / ".penstock" / "restored"

    @property
    def checkpoint(self) -> Path:
        return self.state / "checkpoints" / "orders"

    def put(self, *ids: int) -> None:
        for number in ids:
            (self.root / "in" / f"{number:03}.jsonl").write_text(json.dumps({"id": number}))

    def run(self, **options: Any) -> Outcome:
        plan = app.plan(self.root / "pipeline.yaml")
        return app.run(plan, spark=self._spark.newSession(), options=RunOptions(**options))

    def backup(self) -> Callable[[], None]:
        """Copies the state. Returns a function that restores the copy."""
        copy = self.root / "backup"
        shutil.copytree(self.state, copy)

        def restore() -> None:
            shutil.rmtree(self.state)
            shutil.copytree(copy, self.state)

        return restore

    def lose(self, *logs: str) -> None:
        """Removes the last batch from logs of the checkpoint."""
        number = last_number(self.checkpoint / "commits")
        for log in logs:
            (self.checkpoint / log / f"{number}").unlink()

    def ids(self) -> list[int]:
        lines = [file.read_text() for file in (self.root / "out").glob("*.jsonl")]
        return sorted(json.loads(line)["id"] for text in lines for line in text.splitlines())


@pytest.fixture
def place(tmp_path: Path, penstock_spark: SparkSession) -> Place:
    memory.clear()
    return Place(tmp_path, penstock_spark)


def assert_older(outcome: Outcome, place: Place, *sinks: str) -> None:
    assert outcome.exit_code == 4
    for error, sink in zip(outcome.errors.values(), sinks, strict=True):
        assert error.code == "state-older-than-sink"
        assert str(place.state) in error.message and f'"{sink}"' in error.message
        assert "--fresh" in (error.hint or "")


@pytest.mark.parametrize("later", [(2, 3), (2,)], ids=["two-batches", "one-batch"])
def test_old_backup(place: Place, later: tuple[int, ...]) -> None:
    """The new batch has the number of a batch that was written, and as many files."""
    runtime = "runtime: {restart: {on_permanent: stop_query}}\n"
    pipeline = PIPELINE.replace("sinks:\n", COPY) + runtime
    (place.root / "pipeline.yaml").write_text(pipeline)
    place.put(1)
    assert place.run().exit_code == 0
    restore = place.backup()
    place.put(*later)
    assert place.run().exit_code == 0
    restore()
    for path in (place.root / "in").iterdir():
        path.unlink()
    place.put(4, 5)
    outcome = place.run()
    outcome.errors = dict(sorted(outcome.errors.items()))
    assert_older(outcome, place, "kept", "out")
    kept = sorted(row["id"] for row in memory.tables["restored"].to_pylist())
    assert place.ids() == kept == [1, *later]


def test_lost_entries(place: Place) -> None:
    place.put(1, 2)
    assert place.run().exit_code == 0
    place.lose("offsets", "commits")
    assert place.run().exit_code == 0
    assert place.ids() == [1, 2]
    place.put(3)
    assert place.run().exit_code == 0
    assert place.ids() == [1, 2, 3]
    place.lose("commits")
    place.put(4)
    assert place.run().exit_code == 0
    assert place.ids() == [1, 2, 3, 4]
    place.lose("offsets", "commits")
    config = (place.root / "pipeline.yaml").read_text()
    (place.root / "pipeline.yaml").write_text(config.replace("max_files: 1", "max_files: 9"))
    place.put(5, 6)
    assert_older(place.run(), place, "out")
    assert place.ids() == [1, 2, 3, 4]
    assert place.run(fresh=True).exit_code == 0
    assert place.ids() == sorted([1, 2, 3, 4, *range(1, 7)])
