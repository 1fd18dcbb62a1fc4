"""The durable points of a batch in its storage."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.batch import BatchRunner
from penstock.engine.checkpoints.state_storage import LocalStorage, QueryStorage
from penstock.engine.lookups.lookup_table import LOOKUPS
from penstock.sdk import BatchId


class Recorder(LocalStorage):
    """A storage that records its calls with the names of their paths."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def stage(self, *paths: Path) -> None:
        self.calls.append(("stage", *(path.name for path in paths)))

    def sync(self, *paths: Path) -> None:
        self.calls.append(("sync", *(path.name for path in paths)))

    def check_owner(self) -> None:
        self.calls.append(("check_owner",))


@pytest.fixture
def storage() -> Recorder:
    return Recorder()


@pytest.fixture
def runner(tmp_path: Path, storage: Recorder) -> BatchRunner:
    checkpoint = tmp_path / "q"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets/0").write_text('v1\n{"conf": {}}\na:{"rows": 1}')
    (checkpoint / "metadata").write_text(json.dumps({"id": "query-id"}))
    plan = SimpleNamespace(nodes={}, state=tmp_path)
    query: Any = SimpleNamespace(name="q", root="a", sinks=(), observed={}, whole_input=False)
    observer: Any = SimpleNamespace(
        on_begin=lambda query, number: storage.calls.append(("begin",)),
        on_end=lambda query, number: storage.calls.append(("end",)),
    )
    builder: Any = SimpleNamespace(plan=plan, spool=None)
    paths = QueryStorage(storage, (checkpoint,))
    return BatchRunner(builder, query, checkpoint, observer, storage=paths)


def test_a_batch_is_durable_before_its_rows_and_its_state_before_its_end(
    runner: BatchRunner, storage: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(root: Any, batch: BatchId) -> None:
        storage.calls.append(("rows", f"{batch.number}"))

    monkeypatch.setattr(runner, "_run", run)
    runner(None, 0)  # type: ignore[arg-type]
    assert storage.calls == [("begin",), ("sync", "q"), ("rows", "0"), ("stage", "q"), ("end",)]


def test_sinks_that_have_committed_are_durable_before_the_next_sink(
    runner: BatchRunner, storage: Recorder
) -> None:
    runner._record.add(BatchId("query-id", 0, "content"), "out")
    assert storage.calls == [("sync", "q")]


def test_a_commit_follows_the_tables_of_the_batch_and_the_lease(
    runner: BatchRunner, storage: Recorder
) -> None:
    runner._prepare_commit()
    (runner.checkpoint / LOOKUPS).mkdir()
    runner._prepare_commit()
    assert storage.calls == [("check_owner",), ("sync", LOOKUPS), ("check_owner",)]
