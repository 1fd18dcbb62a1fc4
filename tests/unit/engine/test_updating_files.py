"""The files of updating operators: versions, snapshots, repeated batches and damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_updating_rows import changes

from penstock.core.errors import StateError
from penstock.engine.updating import files
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import WEIGHT, RowState
from penstock.engine.updating.versions import OperatorStateDirectory, StateVersion


@pytest.fixture(autouse=True)
def other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins like a new process: without cached rows."""
    monkeypatch.setattr(files, "cache", files.RowCache())


def write(directory: OperatorStateDirectory, batch: int, value: str) -> None:
    """Writes a batch that adds one row to bucket 3 of the operator `op`."""
    bucket = BucketFiles.of(directory.path, "op", batch, directory.before(batch))
    state = bucket.load(3)
    row = changes([((1, value), 1)], order=batch)
    state.add(row)
    bucket.save(3, state, row, 1)
    directory.save(StateVersion(batch, 16, {"op": bucket.written()}, time=batch))


def rows(directory: OperatorStateDirectory, batch: int) -> list[str]:
    """Returns the values before a batch, in the order of arrival."""
    bucket = BucketFiles.of(directory.path, "op", batch, directory.before(batch))
    table = bucket.load(3).table()
    return [] if table is None else table.sort_by("_penstock_order").column("value").to_pylist()


@pytest.mark.slow
def test_rows_are_read_again_by_another_process(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 16)
    for batch in range(50):
        write(directory, batch, str(batch))
        if batch % 7 == 0:
            files.cache.entries.clear()
    files.cache.entries.clear()
    assert rows(directory, 50) == [str(batch) for batch in range(50)]
    assert directory.before(50).rows == 50
    chain = directory.before(50).chains["op"][3]
    assert directory.before(50).bytes == sum(file.size for file in chain)
    assert chain[0].is_snapshot
    assert len(chain) <= files.MAX_CHAIN


def test_cached_rows_of_another_attempt_are_not_used(tmp_path: Path) -> None:
    """The files of both attempts have the same number, and other rows."""
    directory = OperatorStateDirectory(tmp_path, 16)
    write(directory, 0, "0")
    write(directory, 1, "first")
    kept = dict(files.cache.entries)
    write(directory, 1, "second")
    files.cache.entries.clear()
    files.cache.entries.update(kept)
    assert rows(directory, 2) == ["0", "second"]


def test_a_repeated_batch_begins_with_the_state_before_it(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 16)
    for batch in range(3):
        write(directory, batch, str(batch))
    for _ in range(2):
        write(directory, 2, "again")
    assert rows(directory, 3) == ["0", "1", "again"]


def test_files_of_a_failed_attempt_are_not_read_and_are_removed(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 16)
    write(directory, 0, "a")
    bucket = BucketFiles.of(directory.path, "op", 1, directory.before(1))
    row = changes([((1, "failed"), 1)])
    bucket.save(3, RowState([row]), row, 1)
    files.cache.entries.clear()
    assert rows(directory, 1) == ["a"]
    write(directory, 1, "b")
    assert rows(directory, 2) == ["a", "b"]
    assert len(list(tmp_path.glob("op/*"))) == 2


@pytest.mark.slow
def test_files_that_no_version_needs_are_removed(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 16)
    for batch in range(100):
        write(directory, batch, str(batch))
    assert len(list(tmp_path.glob("op/*/*"))) <= 2 * files.MAX_CHAIN
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_missing_version_is_an_error(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 16)
    for batch in range(3):
        write(directory, batch, str(batch))
    (tmp_path / "2.json").unlink()
    with pytest.raises(StateError, match=r"2\.json is missing"):
        directory.before(3)


def test_the_number_of_buckets_stays_that_of_the_first_batch(tmp_path: Path) -> None:
    write(OperatorStateDirectory(tmp_path, 16), 0, "a")
    assert OperatorStateDirectory(tmp_path, 64).before(1).buckets == 16


def test_weights_of_stored_rows(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 16)
    for batch in range(2):
        write(directory, batch, "same")
    table = BucketFiles.of(tmp_path, "op", 2, directory.before(2)).load(3).table()
    assert table is not None
    assert table.column(WEIGHT).to_pylist() == [2]
