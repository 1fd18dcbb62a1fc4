"""The state directory: entries that a run creates and removes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.log import DiscoveryLog
from penstock.core.errors import RecordError, StateError
from penstock.core.files.private_files import create_directory
from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER, Spool
from penstock.journal.writer import Journal
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.stop import stop_run
from penstock.sdk.state_file import JsonStateFile


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "mydata")


def used(state: StateDirectory) -> StateDirectory:
    """Returns a directory after a run."""
    with state.locked():
        state.write("plan.json", {})
        state.write("life", {"id": "1"})
        run = {"id": "1", "began": now()}
        state.begin_run(run)
        state.end_run(run, ended=now(), ending="complete")
    for folder in ("checkpoints/orders", "nodes/orders", "spool/orders/3", "dead_letters"):
        create_directory(state.root / folder)
        (state.root / folder / "file").touch()
    return state


@pytest.mark.parametrize("entry", ["checkpoints", "version", "lock", "nodes", "stop", "spark.log"])
def test_run_rejects_directory_with_foreign_entries(state: StateDirectory, entry: str) -> None:
    state.root.mkdir()
    (state.root / entry).write_text("1.2\n")
    with pytest.raises(StateError) as caught, state.locked():
        state.reset()
    assert caught.value.code == "foreign-directory"
    assert str(state.root) in caught.value.message and entry in caught.value.message
    assert (state.root / entry).read_text() == "1.2\n"


def test_reset_removes_only_entries_of_state(state: StateDirectory) -> None:
    state.root.mkdir()
    (state.root / "orders.csv").write_text("1\n")
    (state.root / "lost+found").mkdir()
    used(state)
    with state.locked():
        (state.root / ".plan.json.123").touch()
        state.reset()
    names = {path.name for path in state.root.iterdir()}
    assert names == {"lock", "version", "runs.jsonl", "orders.csv", "lost+found"}


def test_reset_follows_no_symbolic_link(state: StateDirectory, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    with state.locked():
        (state.root / "nodes").symlink_to(elsewhere)
        state.reset()
    assert not (state.root / "nodes").is_symlink()
    assert (elsewhere / "file").exists()


def test_killed_run_before_its_marker_leaves_a_usable_directory(state: StateDirectory) -> None:
    state.root.mkdir()
    (state.root / "lock").write_text('{"pid": 1, "host": "a", "since": "2026-01-01T00:00:00Z"}')
    (state.root / ".version.1").touch()
    with state.locked():
        assert (state.root / "version").exists()


def test_files_are_private(state: StateDirectory, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        used(state)
        write_all_files(state)
    finally:
        os.umask(mask)
    modes = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in [state.root, *state.root.rglob("*")]
        if path.name != "file"
    }
    found = {path for path, mode in modes.items() if mode & 0o077}
    assert found == set()
    assert {"mydata/dead_letters/a.arrow", "mydata/nodes/in/journal/durable"} <= set(modes)


def write_all_files(state: StateDirectory) -> None:
    """Writes dead letters, a journal, a discovery log, state of a node and a stop request."""
    dead_letters = DEAD_LETTER.empty_table()
    DeadLetters(state.dead_letters).put("a", dead_letters)
    writer = Spool("p", "q", "n", "sink", directory=str(state.spool / "q")).begin(1, 0)
    writer.add(b"1", RecordError("x"))
    writer.read = 1
    writer.close()
    with Journal(state.root / "nodes/in/journal", pa.schema([("payload", pa.binary())])):
        pass
    log = DiscoveryLog(state.root / "nodes/files/files.log")
    with log.locked():
        log.append([FileRange("a", 1, 1)])
    JsonStateFile(state.root / "nodes/in/journal/poll.json").save({})
    with state.locked():
        state.key()
        with pytest.raises(StateError, match="did not stop within"):
            stop_run(StateDirectory(state.root), timeout=-1)


def test_existing_directory_keeps_its_mode(state: StateDirectory) -> None:
    state.root.mkdir()
    state.root.chmod(0o750)
    with state.locked():
        pass
    assert stat.S_IMODE(state.root.stat().st_mode) == 0o750
