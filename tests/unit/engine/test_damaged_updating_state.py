"""Damaged files of the state of updating queries: an error with the path, never another result."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import StateError
from penstock.engine.updating import files
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import HASH_1, HASH_2, KEY, ORDER, SIDE, TIME, WEIGHT
from penstock.engine.updating.versions import OperatorStateDirectory, StateVersion

NUMBERS = (KEY, HASH_1, HASH_2, SIDE, WEIGHT, ORDER, TIME)


def write_batch(directory: OperatorStateDirectory, number: int) -> Path:
    """Writes a batch with one row in bucket 3. Returns the file of the bucket."""
    version = directory.before(number)
    bucket = BucketFiles.of(directory.path, "sums-1", number, version)
    changes = pa.table({name: pa.array([number + 1], pa.int64()) for name in NUMBERS})
    state = bucket.load(3)
    state.add(changes)
    bucket.save(3, state, changes, 1)
    directory.save(StateVersion(number, version.buckets, {"sums-1": bucket.written()}))
    return directory.path / bucket.attempt / "3.changes.arrow"


@pytest.fixture
def state(tmp_path: Path) -> OperatorStateDirectory:
    return OperatorStateDirectory(tmp_path / "updating", 16)


def load_again(state: OperatorStateDirectory, number: int) -> int:
    """Reads the state before a batch, as a process after a restart. Returns its rows."""
    files.cache.entries.clear()
    return BucketFiles.of(state.path, "sums-1", number, state.before(number)).load(3).size


def test_state_is_read_after_a_restart(state: OperatorStateDirectory) -> None:
    write_batch(state, 0)
    write_batch(state, 1)
    assert load_again(state, 2) == 2
    assert load_again(state, 1) == 1


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param(lambda path: path.unlink(), "is missing", id="missing"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:9]), "has 9 bytes", id="cut"),
        pytest.param(
            lambda path: path.write_bytes(b"x" * path.stat().st_size), "cannot be read", id="other"
        ),
    ],
)
def test_damaged_bucket(state: OperatorStateDirectory, damage: object, problem: str) -> None:
    assert callable(damage)
    path = write_batch(state, 0)
    write_batch(state, 1)
    damage(path)
    with pytest.raises(StateError, match=problem) as raised:
        load_again(state, 2)
    assert str(path) in raised.value.message
    assert (raised.value.code, "--fresh" in (raised.value.hint or "")) == ("corrupt-state", True)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param(lambda path: path.unlink(), "is missing", id="missing"),
        pytest.param(lambda path: path.write_text('{"buckets": 16'), "cannot be read", id="cut"),
        pytest.param(lambda path: path.write_text("[]"), "cannot be read", id="other"),
    ],
)
def test_damaged_version(state: OperatorStateDirectory, damage: object, problem: str) -> None:
    assert callable(damage)
    write_batch(state, 0)
    write_batch(state, 1)
    damage(state.path / "1.json")
    with pytest.raises(StateError, match=problem) as raised:
        load_again(state, 2)
    assert str(state.path / "1.json") in raised.value.message
    assert raised.value.code == "corrupt-state"


def test_state_of_an_empty_directory_is_not_assumed(state: OperatorStateDirectory) -> None:
    assert state.before(0).chains == {}
    with pytest.raises(StateError, match="is missing"):
        state.before(4)
