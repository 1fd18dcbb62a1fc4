"""Paths that tasks compare with those of the driver, also on an executor that joined later."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from penstock.core.errors import StateError, UserError
from penstock.engine.sinks.sink_failures import SinkReport
from penstock.engine.spark_session.executors import _probe, _without_packages
from penstock.engine.spark_session.shared_paths import SharedPath, verify_paths
from penstock.engine.spark_session.versions import versions
from penstock.engine.tasks.dead_letter_writer import Spool


class Task:
    def __init__(self, **expected: Any) -> None:
        self.expected = json.dumps({"host": "driver-host", "versions": versions(), **expected})

    def getLocalProperty(self, name: str) -> str | None:
        return self.expected if name == "penstock.paths" else None


def shared(path: Path) -> SharedPath:
    return SharedPath.on_driver(path, "not shared", "state-not-shared", "Share it.", kept=True)


@pytest.mark.parametrize("found", [None, "the lock of another run"])
def test_a_task_on_another_disk_fails(
    found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    lock.write_text("this run")
    path = asdict(shared(lock))
    lock.unlink()
    if found is not None:
        lock.write_text(found)
    task: Any = Task(state=path, required=[path])
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    spool = Spool("p", "q", "n", "sink", directory=str(tmp_path / "spool"))
    for use in (verify_paths, lambda: spool.begin(1, 1)):
        with pytest.raises(StateError, match="not shared") as caught:
            use()
        assert caught.value.code == "state-not-shared" and caught.value.hint
        assert "driver on driver-host" in (caught.value.detail or "")
    lock.write_text("this run")
    verify_paths()
    spool.begin(1, 1)


def test_a_task_on_another_disk_does_not_need_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    lock.write_text("this run")
    state = asdict(shared(lock))
    lock.unlink()
    task: Any = Task(state=state, required=[])
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    spool = Spool("p", "q", "n", "sink", directory=str(tmp_path / "spool"))
    spool.begin(1, 1)
    assert SinkReport.begin(spool, 0, 1).path is None


def test_a_task_of_an_executor_that_joined_later_with_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"versions": {**versions(), "PyArrow": "1.2"}, "required": []}
    task: Any = Task(state=asdict(shared(tmp_path)), **expected)
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    spool = Spool("p", "q", "n", "sink", directory=str(tmp_path / "spool"))
    with pytest.raises(UserError, match="other versions") as caught:
        spool.begin(1, 1)
    assert caught.value.code == "other-versions"
    assert (caught.value.detail or "").endswith("driver on driver-host: PyArrow 1.2")


def test_the_reason_of_a_difference(tmp_path: Path) -> None:
    directory, file = tmp_path / "in", tmp_path / "in/a.json"
    directory.mkdir()
    file.write_text("x" * 5000)
    of_file, of_directory = shared(file), shared(directory)
    assert of_file.difference() is None and of_directory.difference() is None
    file.write_text("x" * 4096 + "a file that has grown")
    assert of_file.difference() is None
    file.write_text("y")
    assert of_file.difference() == f"{file} differs"
    file.unlink()
    assert of_file.difference() == f"No such file or directory: {file}"
    directory.rmdir()
    assert of_directory.difference() == f"no such directory: {directory}"


@pytest.mark.slow
def test_an_executor_reports_its_differences(tmp_path: Path) -> None:
    paths = [asdict(shared(tmp_path)), asdict(shared(tmp_path / "missing"))]
    driver = {"host": "driver-host", "paths": paths, "versions": {**versions(), "PyArrow": "1.2"}}
    (batch,) = _probe(json.dumps(driver), iter([]))
    failures, different, ((number, reason),) = json.loads(batch.to_pylist()[0]["result"])
    assert (number, reason.partition(": ")[2]) == (1, f"no such directory: {tmp_path / 'missing'}")
    here, there = different.split("; ")
    assert failures == ""
    assert here.endswith(f": PyArrow {versions()['PyArrow']}")
    assert there == "driver on driver-host: PyArrow 1.2"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (
            "at worker\nModuleNotFoundError: No module named 'penstock'\n",
            "No module named 'penstock'",
        ),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has 3.12", None),
        ("Job aborted", ""),
    ],
)
def test_an_executor_without_packages(text: str, detail: str | None) -> None:
    found = _without_packages(Exception(text))
    if detail == "":
        assert found is None
    else:
        assert found is not None and found.code == "other-versions"
        assert found.detail == (detail or text)
