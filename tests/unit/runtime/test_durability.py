"""Files that survive a power failure: written to disk before they replace or outlive others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files.local import LocalStorage
from penstock.core.errors import Rejected
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.journal.writer import Journal
from penstock.plan.model import Plan
from penstock.runtime.dead_letters.store import Collector
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk.state_file import JsonStateFile

Event = tuple[str, str]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Operations in order: `fsync` of a path, `rename` to a path. Hidden files are `*`."""
    recorded: list[Event] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def shown(path: Any) -> str:
        path = Path(path).resolve().relative_to(tmp_path.resolve())
        hidden = path.suffix != "" and path.name.startswith(".")
        return str(path.with_name("*") if hidden else path)

    def record_sync(handle: int) -> None:
        recorded.append(("fsync", shown(Path(f"/proc/self/fd/{handle}").readlink())))
        fsync(handle)

    def record_rename(source: Any, target: Any) -> None:
        recorded.append(("rename", shown(target)))
        rename(source, target)

    def record_replace(source: Any, target: Any) -> None:
        recorded.append(("rename", shown(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "rename", record_rename)
    monkeypatch.setattr(os, "replace", record_replace)
    return recorded


def in_order(events: list[Event], *expected: Event) -> bool:
    """Returns whether events contain the expected ones in this order."""
    remaining = iter(events)
    return all(event in remaining for event in expected)


def reject(state: StateDirectory, recomputed_for: str = "") -> None:
    directory = str(state.spool / "q")
    dead_letters = Spool(
        "p", "q", "out", "sink", directory=directory, recomputed_for=recomputed_for
    ).begin(0, 0)
    dead_letters.add(b"{}", Rejected("too large"))
    dead_letters.close()


def make_collector(state: StateDirectory) -> Collector:
    plan: Any = type("FakePlan", (), {"dead_letter": None, "nodes": {}, "name": "p"})
    checked: Plan = plan
    return Collector(checked, state)


@pytest.mark.parametrize("recomputed_for", ["", "out"])
def test_bad_records_are_on_disk_when_a_task_ends(
    tmp_path: Path, events: list[Event], recomputed_for: str
) -> None:
    reject(StateDirectory(tmp_path / "state"), recomputed_for)
    folder = str(Path("state/spool/q/0") / recomputed_for)
    file = f"{folder}/out-sink-0.arrow"
    assert in_order(events, ("fsync", f"{folder}/*"), ("rename", file), ("fsync", folder))
    synced = {path for kind, path in events if kind == "fsync"}
    assert synced >= {"state/spool/q/0", "state/spool/q", "state/spool", "state"}


def test_dead_letters_are_on_disk_before_the_spool_is_deleted(
    tmp_path: Path, events: list[Event]
) -> None:
    state = StateDirectory(tmp_path / "state")
    reject(state)
    events.clear()
    make_collector(state).collect("q", 0)
    dead_letters = "state/dead_letters"
    assert in_order(
        events, ("fsync", "state"), ("fsync", f"{dead_letters}/*"),
        ("rename", f"{dead_letters}/q-00000000.arrow"), ("fsync", dead_letters),
        ("rename", "state/spool/q/.removed"), ("fsync", "state/spool/q"),
    )  # fmt: skip


def test_dead_letters_of_a_committed_sink_are_on_disk(tmp_path: Path, events: list[Event]) -> None:
    state = StateDirectory(tmp_path / "state")
    reject(state)
    reject(state, "out")
    events.clear()
    make_collector(state).keep("q", 0, "out")
    kept = "state/spool/q/0/.kept"
    synced = {path for kind, path in events if kind == "fsync"}
    assert synced >= {
        "state/spool/q/0", kept, f"{kept}/out", f"{kept}/out/out",
        f"{kept}/out/out-sink-0.arrow", f"{kept}/out/out/out-sink-0.arrow",
    }  # fmt: skip


def test_counts_of_rows_cost_no_fsync(tmp_path: Path, events: list[Event]) -> None:
    state = StateDirectory(tmp_path / "state")
    source = Spool("p", "q", "rows", "decode", directory=str(state.spool / "q")).begin(0, 0)
    source.read = 3
    source.close()
    collector = make_collector(state)
    collector.keep("q", 0, "out")
    collector.collect("q", 0)
    assert collector.read == {("q", "rows"): 3}
    assert not [event for event in events if event[0] == "fsync"]


def test_the_directory_of_a_journal_is_on_disk(tmp_path: Path, events: list[Event]) -> None:
    """Messages in a journal are acknowledged: their sender does not have them any more."""
    Journal(tmp_path / "state/nodes/hooks", pa.schema([("payload", pa.binary())])).close()
    synced = {path for kind, path in events if kind == "fsync"}
    assert synced >= {".", "state", "state/nodes", "state/nodes/hooks"}


def test_the_state_of_a_node_is_on_disk(tmp_path: Path, events: list[Event]) -> None:
    JsonStateFile(tmp_path / "poll.json", "url").save({"etag": "1"})
    assert in_order(events, ("fsync", "*"), ("rename", "poll.json"), ("fsync", "."))


def test_directories_of_published_files_are_on_disk(tmp_path: Path, events: list[Event]) -> None:
    """A new directory of a partition is lost with its files unless its parent is on disk."""
    storage = LocalStorage()
    with storage.create(str(tmp_path / "out/.staged/1")) as file:
        file.write(b"1")
    storage.move(str(tmp_path / "out/.staged/1"), str(tmp_path / "out/day=1/hour=2/1.json"))
    synced = {path for kind, path in events if kind == "fsync"}
    assert synced >= {".", "out", "out/day=1"}
