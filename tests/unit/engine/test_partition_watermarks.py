"""Watermarks of partitions: the least of the partitions that have rows left or are not idle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.sources.source_readers import IDLE, UNREAD
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.watermarks import partition_watermarks
from penstock.engine.watermarks.partition_watermarks import (
    PartitionedSource,
    PartitionWatermarks,
    partitions_id,
)

ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
CLICKS = PartitionedSource("clicks", ID, delay=60.0, idle=10.0)
MINUTE = 60 * 1_000_000
"""A minute of event time in microseconds."""


class Tracker:
    """The watermarks of a query that is not running."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def watermarks(self) -> Mapping[str, int]:
        return dict(self.values)

    def set(self, name: str, watermark: int) -> None:
        self.values[name] = watermark


class Query:
    """The batches of a query with a partitioned source."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checkpoint, self.spool = directory / "checkpoint", directory / "spool"
        (self.checkpoint / "offsets").mkdir(parents=True)
        self.tracker = Tracker()
        monkeypatch.setattr(partition_watermarks, "WatermarkTracker", lambda *_: self.tracker)
        self.batch = -1
        self.restart()

    def restart(self) -> None:
        session: Any = SimpleNamespace(streams=SimpleNamespace(get=lambda _: object()))
        self.watermarks = PartitionWatermarks(session, self.checkpoint, self.spool, (CLICKS,))

    def write(
        self, seconds: int, rows: Mapping[str, int], unread: Sequence[str] = (), idle: bool = False
    ) -> float | None:
        """Plans a batch at a time with the latest minute of its partitions.

        Returns the minute of the watermark.
        """
        self.batch += 1
        offset = {"offsets": 1, **({UNREAD: unread} if unread else {})}
        offset |= {IDLE: True} if idle else {}
        header = json.dumps({"batchTimestampMs": seconds * 1000, "batchWatermarkMs": 0})
        text = f"v2\n{header}\nclicks:{json.dumps(offset)}"
        (self.checkpoint / "offsets" / str(self.batch)).write_text(text)
        for number, (name, minute) in enumerate(rows.items()):
            spool = Spool("p", "q", "clicks", "decode", directory=str(self.spool))
            dead_letters = spool.begin(self.batch, number)
            dead_letters.observe({name: minute * MINUTE})
            dead_letters.close()
        self.watermarks.advance("q", self.batch)
        found = self.tracker.values.get(partitions_id(ID))
        return None if found is None else found / 60_000


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Query:
    return Query(tmp_path, monkeypatch)


def test_the_watermark_waits_for_the_partition_that_is_behind(query: Query) -> None:
    assert query.write(100, {"a": 30, "b": 10}) == 9
    assert query.write(101, {"a": 40}) == 9
    assert query.write(102, {"a": 50, "b": 20}) == 19


def test_an_idle_partition_holds_the_watermark_for_the_idle_time_only(query: Query) -> None:
    query.write(100, {"a": 30, "b": 10})
    assert query.write(109, {"a": 40}) == 9
    assert query.write(110, {"a": 41}) == 40


def test_a_partition_with_unread_rows_is_not_idle(query: Query) -> None:
    query.write(100, {"a": 30, "b": 10})
    assert query.write(200, {"a": 40}, unread=["b"]) == 9


def test_no_watermark_before_the_first_rows_of_a_partition_with_unread_ones(query: Query) -> None:
    assert query.write(100, {"a": 30}, unread=["b"]) == 0
    assert query.write(101, {"b": 5}) == 4


def test_the_latest_row_counts_once_all_partitions_are_idle(query: Query) -> None:
    assert query.write(100, {"a": 30, "b": 10}) == 9
    assert query.write(101, {}, idle=True) == 29


def test_the_watermark_never_moves_back(query: Query) -> None:
    assert query.write(100, {"a": 30, "b": 20}) == 19
    assert query.write(101, {"c": 3}) == 19


def test_partitions_are_known_after_a_restart(query: Query) -> None:
    query.write(100, {"a": 30, "b": 10})
    query.restart()
    assert query.write(101, {"a": 40}) == 9
