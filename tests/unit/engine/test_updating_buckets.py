"""Buckets of the state of updating operators: other numbers of buckets have the same rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from test_updating_rows import changes

from penstock.engine.updating import files
from penstock.engine.updating.buckets import rebucket
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import KEY, WEIGHT
from penstock.engine.updating.versions import OperatorStateDirectory, StateVersion

Rows = Counter[tuple[int, str]]


@pytest.fixture(autouse=True)
def other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins like a new process: without cached rows."""
    monkeypatch.setattr(files, "cache", files.RowCache())


def write(directory: OperatorStateDirectory, version: StateVersion, added: Rows) -> StateVersion:
    """Writes a batch that adds rows of these keys and values."""
    bucket_files = BucketFiles.of(directory.path, "op", version.batch + 1, version)
    buckets: dict[int, list[tuple[tuple[int, str], int]]] = {}
    for row, weight in added.items():
        buckets.setdefault(row[0] % version.buckets, []).append((row, weight))
    for bucket, rows in buckets.items():
        state = bucket_files.load(bucket)
        before = 0 if state.table() is None else state.table().num_rows
        part = changes(rows, order=version.batch + 1)
        state.add(part)
        bucket_files.save(bucket, state, part, state.table().num_rows - before)
    chains = {"op": bucket_files.written()}
    after = StateVersion(version.batch + 1, version.buckets, chains, time=version.batch)
    directory.save(after)
    return after


def stored(directory: OperatorStateDirectory, version: StateVersion) -> Rows:
    """Returns the rows of a state. Each is in the bucket of its key."""
    found: Rows = Counter()
    bucket_files = BucketFiles.of(directory.path, "op", version.batch + 1, version)
    for bucket in version.chains["op"]:
        table: pa.Table = bucket_files.load(bucket).table()
        assert {key % version.buckets for key in table.column(KEY).to_pylist()} <= {bucket}
        for row in table.to_pylist():
            found[row[KEY], row["value"]] += row[WEIGHT]
    return found


@pytest.mark.slow
def test_a_state_has_the_same_rows_in_other_buckets(tmp_path: Path) -> None:
    directory, chance = OperatorStateDirectory(tmp_path, 4), random.Random(7)
    version, expected = directory.before(0), Rows()
    for batch, buckets in enumerate([4, 4, 16, 16, 3, 3, 1, 7, 40, 2]):
        version = rebucket(directory, version, buckets)
        assert version.buckets == buckets
        if batch:
            assert directory.before(batch) == version
            files.cache.entries.clear()
            assert stored(directory, version) == expected
            assert version.rows == len(expected)
        added: Rows = Counter()
        for _ in range(30):
            key = chance.randint(-40, 40)
            row = (key, f"{key}-{chance.randint(0, 2)}")
            added[row] += 1 if expected[row] + added[row] < 1 else chance.choice([1, -1])
        added = Counter({row: weight for row, weight in added.items() if weight})
        version = write(directory, version, added)
        expected.update(added)
        expected = Counter({row: weight for row, weight in expected.items() if weight})
        if chance.random() < 0.5:
            files.cache.entries.clear()
    versions = [directory.before(batch) for batch in (9, 10)]
    named = {file.path for v in versions for chain in v.chains["op"].values() for file in chain}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("op/*/*.arrow")} == named


def test_a_state_without_rows(tmp_path: Path) -> None:
    directory = OperatorStateDirectory(tmp_path, 4)
    assert rebucket(directory, directory.before(0), 9) == StateVersion(-1, 9, is_new=True)
    directory.save(StateVersion(0, 4, is_new=True))
    assert rebucket(directory, directory.before(1), 9).buckets == 9
