"""Temporary directories: creation, and removal after a killed owner."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.core.errors import UserError
from penstock.engine.workers import scratch
from penstock.engine.workers.scratch import Scratch


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="scratch-", dir="/tmp") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


def abandoned(base: Path, name: str, age: float = 0.0) -> Path:
    path = base / name
    path.mkdir()
    lock = path / "scratch.lock"
    lock.touch()
    modified = lock.stat().st_mtime - age
    os.utime(lock, (modified, modified))
    return path


def test_abandoned_directory_is_removed(base: Path) -> None:
    path = abandoned(base, "penstock-1")
    Scratch().close()
    assert not path.exists()


def test_directory_of_a_user_remains(base: Path) -> None:
    (base / "penstock-project").mkdir()
    (base / "penstock-project" / "lock").touch()
    Scratch().close()
    assert (base / "penstock-project" / "lock").exists()


def test_directory_under_creation_is_not_removed(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process starts between any two steps of the creation."""
    flock, owner = fcntl.flock, threading.get_ident()

    def another_process() -> None:
        other = threading.Thread(target=lambda: Scratch().close())
        other.start()
        other.join()

    def start_another(file: object, operation: int) -> None:
        creates = threading.get_ident() == owner and not operation & fcntl.LOCK_NB
        if creates:
            another_process()
        flock(file, operation)  # type: ignore[arg-type]
        if creates:
            another_process()

    monkeypatch.setattr(scratch.fcntl, "flock", start_another)
    created = Scratch()
    another_process()
    assert (created.path / "scratch.lock").exists()
    created.close()
    assert list(base.iterdir()) == []


def test_creation_of_a_killed_process_is_removed_later(base: Path) -> None:
    old, new = abandoned(base, ".penstock-1", age=7200), abandoned(base, ".penstock-2")
    Scratch().close()
    assert (old.exists(), new.exists()) == (False, True)


def test_no_writable_directory_is_an_error_with_its_option(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of the directory may be root, who writes to every directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(base / "missing"))
    with pytest.raises(UserError, match="cannot write temporary files: No such file") as error:
        Scratch()
    assert error.value.code == "no-temporary-files" and "TMPDIR" in (error.value.hint or "")
