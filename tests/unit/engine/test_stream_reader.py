"""Spark's stream reader of a source: the sentinel row, and the dead letters of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.error_codec import EncodedError, decode
from penstock.engine.sources import source_readers
from penstock.engine.sources.source_readers import (
    CHANGED_SCHEMA,
    CLOSED,
    UNREAD,
    SentinelPartition,
    SourcePartition,
    StreamReader,
    source_offset,
)

ROWS = pa.record_batch({"id": [1]})


class Letters:
    """The dead letters of a partition: how they were closed."""

    def __init__(self) -> None:
        self.closed: list[bool] = []

    def close(self, complete: bool = True) -> None:
        self.closed.append(complete)


@pytest.fixture
def dead_letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    monkeypatch.setattr(source_readers.spark_task, "batch_number", lambda: 3)
    monkeypatch.setattr(source_readers.spark_task, "is_retry", lambda: False)
    return Letters()


def reader(dead_letters: Letters) -> StreamReader:
    def read(partition: Any, opened: Letters, is_retry: bool) -> Iterator[pa.RecordBatch]:
        assert opened is dead_letters
        yield from [ROWS] * 3

    source = SimpleNamespace(partitions=lambda start, end: [start["n"], end["n"]])
    spool = SimpleNamespace(begin=lambda batch, partition: dead_letters)
    task: Any = SimpleNamespace(
        source=source, spool=spool, read=read, sentinel=lambda: "sentinel", gap=None
    )
    return StreamReader(task)


@pytest.mark.parametrize(
    ("start", "end", "sentinels"),
    [({}, {}, 0), ({}, {CLOSED: True}, 1), ({CLOSED: True}, {CLOSED: True}, 0)],
)
def test_the_sentinel_row_is_read_once(
    dead_letters: Letters, start: dict[str, Any], end: dict[str, Any], sentinels: int
) -> None:
    parts = reader(dead_letters).partitions({"n": 1, **start}, {"n": 2, **end})
    values = [(part.value, part.number) for part in parts if isinstance(part, SourcePartition)]
    assert values == [(1, 0), (2, 1)]
    assert sum(isinstance(part, SentinelPartition) for part in parts) == sentinels


def test_the_dead_letters_of_a_whole_partition_are_complete(dead_letters: Letters) -> None:
    assert list(reader(dead_letters).read(SourcePartition(1, 0))) == [ROWS] * 3
    assert dead_letters.closed == [True]


def test_the_dead_letters_of_a_partition_that_is_not_read_to_its_end(dead_letters: Letters) -> None:
    rows = reader(dead_letters).read(SourcePartition(1, 0))
    assert next(rows) == ROWS
    rows.close()
    assert dead_letters.closed == [False]


def test_an_offset_of_the_source_has_no_keys_of_the_reader() -> None:
    assert source_offset({"n": 1, CLOSED: True, UNREAD: ["a"]}) == {"n": 1}


@pytest.mark.parametrize(("change", "end"), [(None, 9), (12, 9), (5, 5)])
def test_a_batch_ends_before_a_change_of_the_schema(change: int | None, end: int) -> None:
    made, start = reader_before_change(change), {"n": 2}
    assert made.latestOffset(start, None) == {"n": end}  # type: ignore[arg-type]


def test_a_query_ends_at_a_change_of_the_schema() -> None:
    with pytest.raises(EncodedError) as caught:
        reader_before_change(2).latestOffset({"n": 2}, None)  # type: ignore[arg-type]
    error = decode(str(caught.value))
    assert error is not None and error.code == CHANGED_SCHEMA


def test_the_last_batch_of_a_bounded_source_closes_windows() -> None:
    made = reader_before_change(5, closes_windows=True)
    made.prepareForTriggerAvailableNow()
    offset: dict[str, Any] = {"n": 2}
    offset = made.latestOffset(offset, None)  # type: ignore[arg-type]
    assert offset == {"n": 5}
    last = reader_before_change(None, closes_windows=True)
    last.prepareForTriggerAvailableNow()
    offset = last.latestOffset(offset, None)  # type: ignore[arg-type]
    assert offset == {"n": 9, CLOSED: True}
    assert last.latestOffset(offset, None) == offset  # type: ignore[arg-type]


def test_a_source_without_further_records_closes_windows() -> None:
    made = reader_before_change(None, closes_windows=True)
    made.prepareForTriggerAvailableNow()
    assert made.latestOffset({"n": 9}, None) == {"n": 9, CLOSED: True}  # type: ignore[arg-type]


def test_no_record_is_read_after_the_sentinel_row() -> None:
    offset = {"n": 7, CLOSED: True}
    assert reader_before_change(None).latestOffset(offset, None) == offset  # type: ignore[arg-type]


def reader_before_change(change: int | None, *, closes_windows: bool = False) -> StreamReader:
    """Returns a reader of a source with 9 records, whose schema changes."""

    def schema_change(start: dict[str, int], end: dict[str, int]) -> dict[str, int] | None:
        return None if change is None or change >= end["n"] else {"n": change}

    source = SimpleNamespace(
        latest_offset=lambda start: {"n": 9}, limit_batch=lambda start, end: end,
        schema_change=schema_change,
    )  # fmt: skip
    task: Any = SimpleNamespace(
        source=source, spool=SimpleNamespace(node="orders"), sentinel_only=False, gap=None,
        whole_input=False, partition_idle=None, poll_timeout=0, closes_windows=closes_windows,
    )  # fmt: skip
    return StreamReader(task)
