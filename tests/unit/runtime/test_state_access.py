"""State directories that cannot be read or written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import StateError
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state import directory as state_module
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.state.status import Status, history
from penstock.runtime.stop import stop_run


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    state = StateDirectory(tmp_path / "orders")
    with state.locked():
        run = {"id": "1", "began": now()}
        state.begin_run(run)
        state.end_run(run, ended=now(), ending="complete")
    return state


def fails(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EROFS, "unwritable-state"),
        (errno.EACCES, "unwritable-state"),
    ],
)
@pytest.mark.parametrize(
    "function", ["open_private", "check_ownership", "create_directory_durably"]
)
def test_run_in_unwritable_directory_is_an_error(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, number: int, code: str, function: str
) -> None:
    monkeypatch.setattr(state_module, function, fails(number))
    with pytest.raises(StateError) as caught, state.locked():
        pass
    assert caught.value.code == code
    assert str(state.root) in caught.value.message and caught.value.hint


def test_full_disk_leaves_the_lock_free(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fails(errno.ENOSPC))
        with pytest.raises(StateError) as caught, state.locked():
            pass
    assert caught.value.code == "disk-full"
    with state.locked():
        assert state.owner() is not None
    assert state.owner() is None


ACCESSES: dict[str, Callable[[StateDirectory], object]] = {
    "lock": StateDirectory.owner,
    "status.json": Status.of,
    "runs.jsonl": history,
    "plan.json": lambda state: state.read("plan.json"),
    "dead_letters": lambda state: DeadLetters(state.dead_letters).count(),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_unreadable_entry_is_an_error(state: StateDirectory, name: str) -> None:
    path = state.root / name
    path.unlink(missing_ok=True)
    if name == "dead_letters":
        path.touch()
    else:
        path.mkdir()
    with pytest.raises(StateError) as caught:
        ACCESSES[name](state)
    assert caught.value.code == "unreadable-state"
    assert str(path) in caught.value.message


def test_damaged_dead_letters_are_an_error(state: StateDirectory) -> None:
    state.dead_letters.mkdir()
    (state.dead_letters / "a.arrow").write_bytes(b"no arrow")
    with pytest.raises(StateError) as caught:
        DeadLetters(state.dead_letters).read()
    assert caught.value.code == "corrupt-state"


def test_stop_request_that_cannot_be_written_is_an_error(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with state.locked():
        monkeypatch.setattr(Path, "touch", fails(errno.EACCES))
        with pytest.raises(StateError) as caught:
            stop_run(StateDirectory(state.root), timeout=1)
    assert caught.value.code == "unwritable-state"
