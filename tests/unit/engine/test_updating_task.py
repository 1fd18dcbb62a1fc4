"""Tasks of updating operators: the rows that the changes of a batch affect, in their order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import HASH_1, HASH_2, KEY, ORDER, SIDE, WEIGHT
from penstock.engine.updating.task import (
    ADDED,
    BUCKET,
    KEPT,
    KEY_2,
    NO_SIDE,
    PHASE,
    REMOVED,
    VALUES,
    UpdateState,
)
from penstock.engine.updating.versions import StateVersion

BUCKETS = 3
Change = tuple[int, int, int, int]
"""The order of arrival, the key, the value and the weight."""


def batch_of(changes: list[Change]) -> pa.RecordBatch:
    """Returns changes as the input of a task, with a row that only names a bucket."""
    rows = [
        {BUCKET: key % BUCKETS, KEY: key, HASH_1: hash((key, value)), HASH_2: hash((value, key)),
         SIDE: 0, WEIGHT: weight, f"{VALUES}_0": {"c0": key, "c1": value}, ORDER: order}
        for order, key, value, weight in changes
    ]  # fmt: skip
    rows.append(dict.fromkeys(rows[0], 0) | {SIDE: NO_SIDE, f"{VALUES}_0": None})
    return pa.RecordBatch.from_pylist(rows)


def run(task: UpdateState, changes: list[Change]) -> list[tuple[int, int, int]]:
    """Returns the phases, keys and values of the affected rows, in two batches of the input."""
    half = len(changes) // 2
    batches = [batch_of(part) for part in (changes[:half], changes[half:]) if part]
    rows = pa.Table.from_batches(list(task(iter(batches)))).to_pylist()
    return [(row[PHASE], *row[f"{VALUES}_0"].values()) for row in rows]


def of_bucket(rows: list[tuple[int, int, int]], bucket: int) -> list[tuple[int, int]]:
    return [(key, value) for _, key, value in rows if key % BUCKETS == bucket]


def next_task(task: UpdateState, directory: Path) -> UpdateState:
    """Returns the task of the next batch."""
    version = StateVersion(task.batch, BUCKETS, {"o": task.files.written()}, task.time, {})
    files = BucketFiles.of(directory, "o", task.batch + 1, version)
    return replace(task, files=files, batch=task.batch + 1)


def first_task(directory: Path) -> UpdateState:
    return UpdateState(BucketFiles.of(directory, "o", 0, StateVersion(-1, BUCKETS, {})), 0, 0)


def test_a_bucket_without_changes(tmp_path: Path) -> None:
    named = batch_of([(0, 1, 1, 1)]).slice(1).append_column(KEY_2, pa.array([0]))
    for replaces in (False, True):
        assert not list(replace(first_task(tmp_path), replaces=replaces)(iter([named])))


def test_rows_are_in_the_order_of_arrival(tmp_path: Path) -> None:
    changes = [(order, (order * 7) % 5, order, 1) for order in range(40)]
    shuffled = random.Random(1).sample(changes, len(changes))
    task = first_task(tmp_path)
    first = run(task, shuffled)
    later = run(
        next_task(task, tmp_path), [(order, key, 100 + order, 1) for order, key, *_ in shuffled]
    )
    for bucket in range(BUCKETS):
        added = [(key, value) for _, key, value, _ in changes if key % BUCKETS == bucket]
        assert of_bucket(first, bucket) == added
        replaced = [(key, 100 + value) for key, value in added]
        found = of_bucket(later, bucket)
        assert found[: len(added)] == added
        assert found[len(added) :] == replaced


@pytest.mark.parametrize("seed", range(3))
def test_rows_before_and_after_random_changes(tmp_path: Path, seed: int) -> None:
    chance, task = random.Random(seed), first_task(tmp_path)
    state: Counter[tuple[int, int]] = Counter()
    for _ in range(8):
        orders = iter(chance.sample(range(100), 30))
        changes: list[Change] = []
        for order in orders:
            held = sorted(state.elements())
            row = (chance.randrange(6), chance.randrange(3))
            weight = 1
            if held and chance.random() < 0.4:
                row, weight = chance.choice(held), -1
            state[row] += weight
            changes.append((order, *row, weight))
        after, keys = +state, {key for _, key, *_ in changes}
        before = Counter(after)
        for _, key, value, weight in changes:
            before[key, value] -= weight
        found = Counter(run(task, changes))
        phases = {
            phase: Counter({row[1:]: n for row, n in found.items() if row[0] == phase})
            for phase in (KEPT, REMOVED, ADDED)
        }
        assert phases[KEPT] + phases[REMOVED] == +Counter(
            {row: n for row, n in before.items() if row[0] in keys}
        )
        assert phases[KEPT] + phases[ADDED] == Counter(
            {row: n for row, n in after.items() if row[0] in keys}
        )
        task = next_task(task, tmp_path)
