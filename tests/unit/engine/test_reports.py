"""Reports of tasks: files in the spool, and files that are shipped by an accumulator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext, accumulators

from penstock.core.errors import RecordError, StateError
from penstock.engine.reports import report
from penstock.engine.reports.channel import CHANNEL
from penstock.engine.reports.inbox import Inbox
from penstock.engine.reports.report import begin_report
from penstock.engine.tasks.dead_letter_writer import Spool

NUMBER = 4217


class Task:
    """A task of a cluster, which is over once its values are taken."""

    def getLocalProperty(self, name: str) -> str | None:
        return str(NUMBER) if name == CHANNEL else None

    def take_values(self) -> list[Any]:
        found: Any = accumulators._accumulatorRegistry.pop(NUMBER, None)
        return [] if found is None else list(found._value)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    task: Any = Task()
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    yield task
    task.take_values()


def write(path: Path, content: bytes, *, replaces: bool = True) -> None:
    made = begin_report(path)
    made.file.write(content)
    made.publish(replaces=replaces)


def test_a_task_sends_its_files_to_the_driver(task: Task, tmp_path: Path) -> None:
    path, other = tmp_path / "spool/q/1/a.count", tmp_path / "spool/q/1/b.count"
    write(path, b"first")
    write(other, b"other")
    assert not path.exists()
    values, inbox = task.take_values(), Inbox(tmp_path)
    assert len(values) == 2 and inbox.addInPlace([], values) == []
    assert (path.read_bytes(), other.read_bytes()) == (b"first", b"other")
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(".")] == []


def test_a_stage_that_is_computed_twice_counts_once(task: Task, tmp_path: Path) -> None:
    inbox, path = Inbox(tmp_path), tmp_path / "spool/q/1/a.count"
    for content in (b"first", b"second"):
        write(path, content)
        inbox.addInPlace([], task.take_values())
    assert path.read_bytes() == b"second"
    write(path, b"a part", replaces=False)
    inbox.addInPlace([], task.take_values())
    assert path.read_bytes() == b"second"


def test_a_report_that_cannot_be_written_is_an_error(task: Task, tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file in place of the directory")
    write(tmp_path / "spool/q/1/a.count", b"1")
    inbox = Inbox(tmp_path)
    inbox.addInPlace([], task.take_values())
    for _ in range(2):
        with pytest.raises(StateError, match="a report of a task cannot be written") as caught:
            inbox.confirm()
        assert caught.value.code == "unwritable-state"


def test_dead_letters_are_durable_when_they_are_confirmed(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool("p", "q", "n", "decode", directory=str(tmp_path / "spool/q"))
    letters = spool.begin(3, 0)
    letters.add(b"{", RecordError("damaged"), "in.json", 7)
    letters.read = 5
    letters.close()
    inbox = Inbox(tmp_path)
    inbox.addInPlace([], task.take_values())
    folder = tmp_path / "spool/q/3"
    assert json.loads((folder / "n-decode-0.count").read_text())["read"] == 5
    synced: list[Path] = []
    monkeypatch.setattr("penstock.engine.reports.inbox.sync", synced.append)
    monkeypatch.setattr("penstock.engine.reports.report.sync", synced.append)
    inbox.confirm()
    file = folder / "n-decode-0.arrow"
    assert synced == [file, folder, tmp_path / "spool/q", tmp_path / "spool", tmp_path]
    inbox.confirm()
    assert len(synced) == 5


def test_a_report_that_is_too_large(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_BYTES", 3)
    write(tmp_path / "fits", b"123")
    with pytest.raises(StateError, match="4 B") as caught:
        write(tmp_path / "too large", b"1234")
    assert caught.value.code == "report-too-large" and caught.value.hint
