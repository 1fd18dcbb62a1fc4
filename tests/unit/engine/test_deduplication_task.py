"""Tasks of a deduplication and their state, batch by batch, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.error_codec import EncodedError
from penstock.core.errors import StateError
from penstock.engine.deduplication import task
from penstock.engine.deduplication.attempt import FOLDER, Attempt
from penstock.engine.deduplication.kept_rows import EVENT_TIME
from penstock.engine.deduplication.task import BUCKETS, FirstRows
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.rows import HASH_2, KEY, ORDER
from penstock.engine.updating.task import BUCKET
from penstock.engine.updating.versions import OperatorStateDirectory, StateVersion

WITHIN = 10_000
Row = tuple[int, int | None]
"""The key, which is its bucket too, and the event time in milliseconds."""


class Stream:
    """A deduplication of one stream, whose batches are computed by hand."""

    def __init__(self, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = OperatorStateDirectory(checkpoint / FOLDER, BUCKETS)
        self.function = FirstRows(WITHIN * 1000, str(self.state.path), "once-1")
        self.monkeypatch = monkeypatch

    def begin(self, batch: int, name: str, watermark: int) -> None:
        Attempt(batch, name, watermark).write(self.state.path)
        self.monkeypatch.setattr(task.spark_task, "batch_number", lambda: batch)

    def compute(self, rows: Sequence[Row], *, chunk: int = 2) -> list[bool]:
        arrays = [column(rows[i : i + chunk]) for i in range(0, len(rows), chunk)]
        return [flag for flags in self.function(iter(arrays)) for flag in flags.to_pylist()]

    def commit(self, batch: int, name: str) -> StateVersion:
        chains = self.state.before(batch).chains.get("once-1", {})
        files = BucketFiles(str(self.state.path), f"once-1/{name}", chains)
        self.state.save(StateVersion(batch, BUCKETS, {"once-1": files.written()}))
        return self.state.before(batch + 1)


def column(rows: Sequence[Row]) -> pa.StructArray:
    """Returns rows as Spark passes them, in reverse order of arrival."""
    values = [
        {BUCKET: key, ORDER: -number, KEY: key, HASH_2: key,
         EVENT_TIME: None if time is None else time * 1000}
        for number, (key, time) in enumerate(rows)
    ]  # fmt: skip
    fields = [(name, pa.int64()) for name in (BUCKET, ORDER, KEY, HASH_2, EVENT_TIME)]
    return pa.array(values, pa.struct(fields))


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    return Stream(tmp_path, monkeypatch)


def test_kept_rows_are_remembered_by_later_batches(stream: Stream) -> None:
    stream.begin(0, "0-a", 0)
    assert stream.compute([(1, 100_000), (2, 100_000)]) == [True, True]
    stream.commit(0, "0-a")
    stream.begin(1, "1-a", 90_000)
    assert stream.compute([(1, 109_999), (2, 110_000)]) == [False, True]
    assert stream.commit(1, "1-a").rows == 3


def test_rows_are_compared_in_their_order(stream: Stream) -> None:
    stream.begin(0, "0-a", 0)
    assert stream.compute([(1, 105_000), (1, 100_000)], chunk=5) == [False, True]


def test_late_rows_have_no_effect(stream: Stream) -> None:
    stream.begin(0, "0-a", 0)
    stream.compute([(1, 200_000)])
    stream.commit(0, "0-a")
    stream.begin(1, "1-a", 150_000)
    assert stream.compute([(2, 150_000)]) == [True]
    assert stream.compute([(2, 150_001)]) == [True]


def test_rows_without_a_time_are_kept(stream: Stream) -> None:
    stream.begin(0, "0-a", 0)
    assert stream.compute([(1, None), (1, None)]) == [True, True]
    assert stream.commit(0, "0-a").rows == 0


def test_a_batch_can_be_computed_again(stream: Stream) -> None:
    """By several readers of its rows, and in another attempt with other rows."""
    stream.begin(0, "0-a", 0)
    rows = [(1, 100_000), (3, 100_000)]
    assert stream.compute(rows) == stream.compute(rows) == [True, True]
    stream.begin(0, "0-b", 0)
    assert stream.compute([(1, 100_000)]) == [True]
    stream.commit(0, "0-b")
    stream.begin(1, "1-a", 90_000)
    assert stream.compute([(1, 101_000), (3, 101_000)]) == [False, True]


@pytest.mark.slow
def test_rows_expire_by_the_watermark(stream: Stream) -> None:
    watermark = 0
    for batch in range(60):
        stream.begin(batch, f"{batch}-a", watermark)
        time = 100_000 + batch * WITHIN
        assert stream.compute([(1, time)]) == [True]
        version = stream.commit(batch, f"{batch}-a")
        watermark = time
    assert version.rows <= 4


def test_the_whole_input_needs_no_state() -> None:
    function = FirstRows(WITHIN * 1000, None, "")
    (flags,) = function(iter([column([(1, 100_000), (1, 120_000), (1, 115_000)])]))
    assert flags.to_pylist() == [True, False, True]


def test_a_missing_state_is_an_error(stream: Stream) -> None:
    with pytest.raises(StateError, match=r"2\.json is missing"):
        stream.state.before(3)


def test_a_task_of_another_batch_is_an_error(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.begin(0, "0-a", 0)
    monkeypatch.setattr(task.spark_task, "batch_number", lambda: 1)
    with pytest.raises(EncodedError, match="a task of batch 1 runs in batch 0"):
        stream.compute([(1, 100_000)])
