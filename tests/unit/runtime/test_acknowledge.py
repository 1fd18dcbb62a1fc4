"""Acknowledgement of a source that several queries read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import Transient
from penstock.core.log import Silent
from penstock.engine.checkpoints.state_storage import LocalStorage
from penstock.plan.model import Plan
from penstock.runtime.acknowledge import Acknowledger
from penstock.runtime.backlog import count_backlog
from penstock.runtime.state.directory import StateDirectory

PIPELINE = """
sources:
  numbers: {type: generate, fields: {id: sequence}, rows: 100}
transforms:
  distinct: {type: dedupe, from: numbers, keys: [id], within: forever}
sinks:
  copy: {type: blackhole, from: numbers}
  once: {type: blackhole, from: distinct}
"""


class Run:
    """Two queries of one source, their logs, and the acknowledged offsets of the source."""

    def __init__(self, directory: Path) -> None:
        (directory / "p.yaml").write_text(PIPELINE)
        self.plan: Plan = app.plan(directory / "p.yaml")
        self.state = StateDirectory(directory / "state")
        self.first, self.second = (query.name for query in self.plan.queries)
        self.offsets: list[int] = []
        self.errors: list[Exception] = []
        source: Any = self.plan.nodes["numbers"].source
        source.commit = self._commit
        self.acknowledger = Acknowledger(self.plan, self.state, Silent())

    def _commit(self, offset: Any) -> None:
        if self.errors:
            raise self.errors.pop()
        self.offsets.append(offset["rows"])

    def commit(self, query: str, number: int, rows: int) -> None:
        """Writes a batch that ends after some rows to the logs of a query."""
        self.plan_batch(query, number, rows, "commits")

    def plan_batch(self, query: str, number: int, rows: int, *logs: str) -> None:
        """Writes a batch that ends after some rows to the log of offsets, and to other logs."""
        for log in ("offsets", *logs):
            path = self.state.checkpoint(query) / log / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'v2\n{{}}\nnumbers:{{"rows": {rows}, "row": 0, "time": 0}}')


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_an_offset_is_acknowledged_once_all_queries_have_committed_it(run: Run) -> None:
    run.commit(run.first, 0, 10)
    run.acknowledger.acknowledge()
    assert run.offsets == []
    run.commit(run.second, 0, 7)
    run.acknowledger.acknowledge()
    run.acknowledger.acknowledge()
    assert run.offsets == [7]
    run.commit(run.second, 1, 12)
    run.acknowledger.acknowledge()
    assert run.offsets == [7, 10]


def test_a_failed_acknowledgement_is_repeated(run: Run) -> None:
    run.errors.append(Transient("could not reach the server"))
    for query in (run.first, run.second):
        run.commit(query, 0, 10)
    run.acknowledger.acknowledge()
    assert run.offsets == []
    run.acknowledger.acknowledge()
    assert run.offsets == [10]


def test_the_commit_log_is_on_disk_before_the_acknowledgement(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    fsync = os.fsync

    def record(handle: int) -> None:
        assert not run.offsets
        synced.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    for query in (run.first, run.second):
        run.commit(query, 3, 10)
    run.acknowledger.acknowledge()
    assert run.offsets == [10]
    commits = [run.state.checkpoint(query) / "commits" for query in (run.first, run.second)]
    assert synced >= {str(path.resolve()) for log in commits for path in (log, log / "3")}


def test_the_backlog_is_that_of_the_query_that_is_behind(run: Run) -> None:
    assert count_backlog(run.plan, run.state) == 100
    run.commit(run.first, 0, 90)
    run.commit(run.second, 0, 60)
    assert count_backlog(run.plan, run.state) == 40


def test_an_unreachable_source_does_not_end_the_run(run: Run) -> None:
    """Its batch may still be computed, and its rows are counted by a query of a database."""
    source: Any = run.plan.nodes["numbers"].source

    def lag(current: Any, latest: Any) -> int:
        raise Transient("lost the connection")

    for query in (run.first, run.second):
        run.commit(query, 0, 10)
        run.plan_batch(query, 1, 30)
    assert run.acknowledger.pending() == {"numbers": 20}
    source.lag = lag
    assert run.acknowledger.pending() == {"numbers": 0}


class Outage(LocalStorage):
    """A storage that fails a number of times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.synced = failures, list[str]()

    def sync(self, *paths: Path) -> None:
        if self.failures:
            self.failures -= 1
            raise Transient("could not write s3://bucket")
        self.synced += [f"{path.parent.name}/{path.name}" for path in paths]


def test_a_commit_log_that_is_not_stored_is_not_acknowledged(run: Run) -> None:
    run.state.storage = storage = Outage(failures=1)
    for query in (run.first, run.second):
        run.commit(query, 3, 10)
    run.acknowledger.acknowledge()
    assert run.offsets == []
    run.acknowledger.acknowledge()
    assert run.offsets == [10] and storage.synced == ["offsets/3", "commits/3"] * 2
