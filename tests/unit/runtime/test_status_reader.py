"""Repeated reading of a status: each change is seen, and an unchanged file is not read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import StateError
from penstock.observe.metrics import Metrics
from penstock.runtime.state import status as status_module
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.state.foreign import read_numbers
from penstock.runtime.state.lock import parse_owner
from penstock.runtime.state.status import Status, StatusReader


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "orders")


def endings(reader: StatusReader) -> list[str]:
    """Returns the endings of the finished runs, which a first reading finds too."""
    found, first = reader.read(), Status.of(reader.state)
    assert (found.owner, found.runs, found.complete) == (first.owner, first.runs, first.complete)
    return [run.ending for run in found.runs]


def test_each_change_is_seen(state: StateDirectory) -> None:
    reader = StatusReader(state)
    assert reader.read() == Status(None, None, (), False)
    for run, ending in (("1", "killed"), ("2", "failed"), ("3", "complete"), ("4", "killed")):
        with state.locked():
            state.begin_run({"id": run, "began": now()})
            assert len(endings(reader)) == int(run) - 1
            assert reader.read().owner is not None
            for batches in (1, 2):
                state.write("status.json", {**Metrics().snapshot(), "batches": batches})
                numbers = reader.read().numbers
                assert numbers is not None and numbers["batches"] == batches
            assert not reader.read().stopping
            (state.root / "stop").touch()
            assert reader.read().stopping
            if ending != "killed":
                state.end_run({"id": run, "began": now()}, ended=now(), ending=ending)
        assert endings(reader)[0] == ending
        assert reader.read().owner is None
    state.write("complete", {})
    assert endings(reader) == ["killed", "complete", "failed", "killed"]
    state.reset()
    assert reader.read().numbers is None and not reader.read().complete


def test_unchanged_files_are_read_once(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Counted(StateDirectory):
        def history(self) -> list[dict[str, Any]]:
            read.append("history")
            return super().history()

    parsed: list[bytes] = []

    def counted_owner(text: bytes) -> dict[str, Any]:
        parsed.append(text)
        return parse_owner(text)

    def counted_numbers(path: Path) -> Any:
        read.append(path.name)
        return read_numbers(path)

    monkeypatch.setattr(status_module, "parse_owner", counted_owner)
    monkeypatch.setattr(status_module, "read_numbers", counted_numbers)
    reader = StatusReader(Counted(state.root))
    with state.locked():
        state.begin_run({"id": "1", "began": now()})
        state.write("status.json", Metrics().snapshot())
        first = reader.read()
        assert (read, len(parsed)) == (["status.json", "history"], 1)
        second = reader.read()
        assert (second.owner, second.numbers, second.runs) == (
            first.owner, first.numbers, first.runs,
        )  # fmt: skip
        assert (len(read), len(parsed)) == (2, 1)
    killed = reader.read()
    assert [run.ending for run in killed.runs] == ["killed"]
    count = len(read)
    assert reader.read().runs == killed.runs and len(read) == count


def test_metrics_of_an_earlier_version_are_read(state: StateDirectory) -> None:
    numbers: dict[str, Any] = {**Metrics().snapshot()}
    for name in ("began", "receivers", "side_outputs", "started", "stopping"):
        del numbers[name]
    state.root.mkdir()
    state.write("status.json", {**numbers, "later": 1})
    assert StatusReader(state).read().numbers == numbers


@pytest.mark.parametrize(
    ("changed", "detail"),
    [({"batches": "1"}, "batches: Input should be a valid integer"),
     ({"nodes": []}, "nodes: Input should be an object"),
     ({"nodes": {"a": {"kind": "sink"}}}, "nodes.a.type: Field required"),
     ({"queries": {"a": 1}}, "queries.a: Input should be an object")],
)  # fmt: skip
def test_other_content_is_an_error(
    state: StateDirectory, changed: dict[str, Any], detail: str
) -> None:
    state.root.mkdir()
    state.write("status.json", {**Metrics().snapshot(), **changed})
    with pytest.raises(StateError) as caught:
        StatusReader(state).read()
    assert caught.value.code == "corrupt-state" and detail in str(caught.value.detail)


def test_lines_that_are_no_runs_are_left_out(state: StateDirectory) -> None:
    with state.locked():
        state.begin_run({"id": "1", "began": now()})
        state.end_run({"id": "1", "began": now()}, ended=now(), ending="failed", errors={})
        with (state.root / "runs.jsonl").open("a") as file:
            file.write('5\n{"id": 1}\n\0}\n{"id": "2", "beg\n')
        state.begin_run({"id": "2", "began": now()})
    assert [run.ending for run in StatusReader(state).read().runs] == ["killed", "failed"]
