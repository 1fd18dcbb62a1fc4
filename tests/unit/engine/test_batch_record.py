"""Record of a batch: sinks that have committed it, and its writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.errors import StateError
from penstock.engine.checkpoints.batch_record import BatchRecordFile
from penstock.sdk import BatchId

FIRST, NEXT = BatchId("q", 4, "a"), BatchId("q", 5, "b")


def test_sinks_of_one_batch(tmp_path: Path) -> None:
    record = BatchRecordFile(tmp_path, None)
    assert record.done(FIRST) == frozenset()
    record.add(FIRST, "one")
    record.add(FIRST, "two")
    assert BatchRecordFile(tmp_path, 4).done(FIRST) == {"one", "two"}
    assert record.done(BatchId("q", 4, "other")) == record.done(NEXT) == frozenset()
    record.add(NEXT, "one")
    assert BatchRecordFile(tmp_path, 5).done(NEXT) == {"one"}
    assert BatchRecordFile(tmp_path, 5).done(FIRST) == frozenset()


def test_writers_of_a_repeated_batch(tmp_path: Path) -> None:
    assert BatchRecordFile(tmp_path, None).partitioning(FIRST, "out", (3, ("id",))) == (3, ("id",))
    restarted = BatchRecordFile(tmp_path, 4)
    assert restarted.partitioning(FIRST, "out", (2, ("key",))) == (3, ["id"])
    assert restarted.partitioning(FIRST, "other", (2, ("key",))) == (2, ("key",))
    assert restarted.partitioning(NEXT, "out", (2, ("key",))) == (2, ("key",))
    assert BatchRecordFile(tmp_path, 5).partitioning(NEXT, "out", (9, ())) == (2, ["key"])
    assert restarted.partitioning(NEXT, "out", None) is None


def test_damaged_record(tmp_path: Path) -> None:
    (tmp_path / "penstock-batch.json").write_text("[]")
    with pytest.raises(StateError) as caught:
        BatchRecordFile(tmp_path, None)
    assert caught.value.code == "corrupt-state"
