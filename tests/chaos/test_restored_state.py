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
from penstock.runtime.outcome import Outcome

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

PIPELINE = """\
name: restored
sources:
  orders: {type: files, path: "in/*.jsonl", order: name, max_files: 1, schema: id LONG}
sinks:
  out: SINK
"""
SINKS = {
    "files": "{type: files, from: orders, path: out}",
    "memory": "{type: memory, from: orders, name: restored}",
}


class Place:
    """A pipeline that writes a file of its input in each batch."""

    def __init__(self, root: Path, spark: SparkSession, sink: str) -> None:
        self.root, self._spark, self._sink = root, spark, sink
        (root / "in").mkdir()
        (root / "pipeline.yaml").write_text(PIPELINE.replace("SINK", SINKS[sink]))

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

    def ids(self) -> list[int]:
        if self._sink == "memory":
            return sorted(row["id"] for row in memory.tables["restored"].to_pylist())
        lines = [file.read_text() for file in (self.root / "out").glob("*.jsonl")]
        return sorted(json.loads(line)["id"] for text in lines for line in text.splitlines())


@pytest.fixture
def place(tmp_path: Path, penstock_spark: SparkSession, request: pytest.FixtureRequest) -> Place:
    """A place with the sink of the parameter. The contract tests repeated batches of each sink."""
    memory.clear()
    return Place(tmp_path, penstock_spark, getattr(request, "param", "files"))


def assert_older(outcome: Outcome, place: Place) -> None:
    (error,) = outcome.errors.values()
    assert outcome.exit_code == 4
    assert error.code == "state-older-than-sink"
    assert str(place.state) in error.message and '"out"' in error.message
    assert "--fresh" in (error.hint or "")


@pytest.mark.parametrize("place", SINKS, indirect=True)
@pytest.mark.parametrize("later", [(2, 3), (2,)], ids=["two-batches", "one-batch"])
def test_old_backup(place: Place, later: tuple[int, ...]) -> None:
    """The new batch has the number of a batch that was written, and as many files."""
    place.put(1)
    assert place.run().exit_code == 0
    restore = place.backup()
    place.put(*later)
    assert place.run().exit_code == 0
    restore()
    for path in (place.root / "in").iterdir():
        path.unlink()
    place.put(4, 5)
    assert_older(place.run(), place)
    assert place.ids() == [1, *later]


def test_lost_entries_of_the_last_batch(place: Place) -> None:
    place.put(1, 2)
    assert place.run().exit_code == 0
    for log in ("offsets", "commits"):
        (place.checkpoint / log / "1").unlink()
    assert place.run().exit_code == 0
    assert place.ids() == [1, 2]
    place.put(3)
    assert place.run().exit_code == 0
    assert place.ids() == [1, 2, 3]


def test_lost_entries_and_other_rows(place: Place) -> None:
    place.put(1, 2)
    assert place.run().exit_code == 0
    for log in ("offsets", "commits"):
        (place.checkpoint / log / "1").unlink()
    config = (place.root / "pipeline.yaml").read_text()
    (place.root / "pipeline.yaml").write_text(config.replace("max_files: 1", "max_files: 9"))
    place.put(3, 4)
    assert_older(place.run(), place)
    assert place.ids() == [1, 2]


def test_lost_commit_of_the_last_batch(place: Place) -> None:
    place.put(1, 2)
    assert place.run().exit_code == 0
    (place.checkpoint / "commits" / "1").unlink()
    place.put(3)
    assert place.run().exit_code == 0
    assert place.ids() == [1, 2, 3]


def test_fresh_state_writes_all_rows(place: Place) -> None:
    place.put(1, 2)
    assert place.run().exit_code == 0
    assert place.run(fresh=True).exit_code == 0
    assert place.ids() == [1, 1, 2, 2]
