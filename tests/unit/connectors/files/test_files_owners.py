"""Sinks of different owners that write to one directory at the same time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSink, FilesSinkConfig
from penstock.connectors.files import sink as module
from penstock.sdk import BatchId, Context

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def create_sink(tmp_path: Path, lines: Any) -> Any:
    def create_sink(owner: str, **options: Any) -> FilesSink:
        config = FilesSinkConfig.model_validate({"path": str(tmp_path / "out"), **options})
        sink = FilesSink(config, Context("p", "n", owner=owner))
        sink.format = lines
        return sink

    return create_sink


def write(sink: FilesSink, query: str, *ids: int) -> Any:
    """Writes batch 0 of a query. Returns its receipt."""
    writer = sink.writer(None, BatchId(query, 0), 0, SCHEMA)
    writer.write(pa.RecordBatch.from_pylist([{"id": id} for id in ids], schema=SCHEMA))
    return writer.commit()


def visible_ids(root: Path) -> list[int]:
    texts = [path.read_text() for path in (root / "out").rglob("*.jsonl")]
    return sorted(json.loads(line)["id"] for text in texts for line in text.splitlines())


def run_beside(sink: FilesSink) -> None:
    """Does everything that a run does apart from batches."""
    sink.recover()
    sink.tick()
    sink.complete()


def test_an_open_batch_of_another_owner_is_kept(create_sink: Any, tmp_path: Path) -> None:
    one, two = create_sink("one"), create_sink("two")
    receipt = write(one, "query-1", 1, 2)
    run_beside(two)
    two.commit(BatchId("query-2", 0), [write(two, "query-2", 3)])
    two.complete()
    one.commit(BatchId("query-1", 0), [receipt])
    assert visible_ids(tmp_path) == [1, 2, 3]


def test_staged_rows_of_another_owner_stay_staged(
    create_sink: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    roll = {"roll": {"max_size": "1 MB", "interval": "1 hour"}}
    one, two = create_sink("one", **roll), create_sink("two", **roll)
    one.commit(BatchId("query-1", 0), [write(one, "query-1", 1)])
    monkeypatch.setattr(module.time, "time", lambda: 1e12)
    run_beside(two)
    assert visible_ids(tmp_path) == []
    one.complete()
    assert visible_ids(tmp_path) == [1]


def test_equal_queries_of_two_owners_have_different_files(create_sink: Any, tmp_path: Path) -> None:
    for owner, id_ in (("one", 1), ("two", 2)):
        sink = create_sink(owner)
        sink.commit(BatchId("replay-1", 0), [write(sink, "replay-1", id_)])
    assert visible_ids(tmp_path) == [1, 2]


def test_staged_rows_of_an_earlier_query_of_the_owner_are_published(
    create_sink: Any, tmp_path: Path
) -> None:
    roll = {"roll": {"max_size": "1 MB"}}
    before = create_sink("one", **roll)
    before.commit(BatchId("before-fresh", 0), [write(before, "before-fresh", 1)])
    write(before, "before-fresh", 2)
    after = create_sink("one", **roll)
    after.recover()
    after.commit(BatchId("after-fresh", 0), [write(after, "after-fresh", 3)])
    after.complete()
    assert visible_ids(tmp_path) == [1, 3]
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_hidden_files_of_another_owner_are_logged(create_sink: Any, monkeypatch: Any) -> None:
    logged: list[str] = []
    monkeypatch.setattr(
        module.logger, "warning", lambda event, **facts: logged.append(facts["path"])
    )
    write(create_sink("one"), "query-1", 1)
    two = create_sink("two")
    two.recover()
    assert [Path(path).name.rpartition("-")[2] for path in logged] == ["one"]
