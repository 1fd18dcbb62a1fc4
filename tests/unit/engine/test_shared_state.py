"""Verification of the state directory in the tasks of an executor that joined later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from penstock.core.errors import StateError
from penstock.engine.spark_session.shared_state import verify_state
from penstock.engine.tasks.dead_letter_writer import Spool


class Task:
    def __init__(self, state: dict[str, str]) -> None:
        self.state = json.dumps(state)

    def getLocalProperty(self, name: str) -> str:
        return self.state


@pytest.mark.parametrize("found", [None, "the lock of another run"])
def test_a_task_on_another_disk_fails(
    found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    if found is not None:
        lock.write_text(found)
    task: Any = Task({"lock": str(lock), "content": "this run", "host": "driver-host"})
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    spool = Spool("p", "q", "n", "sink", directory=str(tmp_path / "spool"))
    for use in (verify_state, lambda: spool.begin(1, 1)):
        with pytest.raises(StateError, match="do not share the state directory") as caught:
            use()
        assert caught.value.code == "state-not-shared" and caught.value.hint
        assert "driver on driver-host" in (caught.value.detail or "")
    lock.write_text("this run")
    verify_state()
    spool.begin(1, 1)
