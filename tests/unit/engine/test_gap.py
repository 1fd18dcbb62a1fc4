"""The gap before a batch: sources of a query that are asked one after another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.engine.sources import gap
from penstock.engine.sources.gap import Wait, make_gap, prepare_gap


class Clock:
    """A clock that waiting advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(gap, "time", clock)
    return clock


def waits(checkpoint: Path, seconds: float, *nodes: str, records: int | None = None) -> list[Wait]:
    prepare_gap(checkpoint)
    made = make_gap(checkpoint, seconds, records)
    assert made is not None
    return [made.at(node) for node in nodes]


def look(sources: Sequence[Wait], *ends: int, unread: Sequence[int | None] = ()) -> list[bool]:
    """Returns whether each source starts a batch up to its latest offset."""
    counts = unread or [None] * len(ends)
    items = zip(sources, ends, counts, strict=True)
    return [source.is_over({"end": end}, count) for source, end, count in items]


def test_a_batch_starts_after_the_gap(tmp_path: Path, clock: Clock) -> None:
    (source,) = waits(tmp_path, 2.0, "in")
    assert look([source], 1) == [False]
    clock.now += 1.8
    assert look([source], 2) == [False], "a record within the gap"
    clock.now += 1.8
    assert look([source], 2) == [False]
    clock.now += 0.2
    assert look([source], 2) == [True]
    assert look([source], 3) == [False], "the next session"


def test_all_sources_of_a_query_start_together(tmp_path: Path, clock: Clock) -> None:
    both = waits(tmp_path, 2.0, "a/b", "a b")
    assert look(both, 1, 1) == [False, False]
    clock.now += 1.5
    assert look(both, 1, 2) == [False, False]
    clock.now += 1.5
    assert look(both, 1, 2) == [False, False], "the other source had a record 1.5 s ago"
    clock.now += 1.0
    assert look(both, 1, 3) == [True, True], "a record just now is part of the session"
    assert look(both, 1, 3) == [False, False]


def test_a_start_has_a_session_of_its_own(tmp_path: Path, clock: Clock) -> None:
    (source,) = waits(tmp_path, 2.0, "gone")
    clock.now = 1e9
    look([source], 1)
    clock.now = 100.0
    (source,) = waits(tmp_path, 2.0, "in")
    look([source], 1)
    clock.now += 2.0
    assert look([source], 1) == [True]


def test_no_gap(tmp_path: Path) -> None:
    assert make_gap(tmp_path, None) is None
    assert make_gap(None, 1.0) is None


def test_enough_records_start_a_batch(tmp_path: Path, clock: Clock) -> None:
    both = waits(tmp_path, 9.0, "a", "b", records=3)
    assert look(both, 1, 0, unread=[1, 0]) == [False, False]
    assert look(both, 1, 1, unread=[1, 1]) == [False, False]
    assert look(both, 2, 1, unread=[2, 1]) == [True, True]
    assert look(both, 2, 1, unread=[0, 0]) == [False, False], "the batch has all records"
    assert look(both, 4, 1, unread=[2, 0]) == [False, False]


def test_a_record_waits_for_others_no_longer_than_the_interval(
    tmp_path: Path, clock: Clock
) -> None:
    (source,) = waits(tmp_path, 2.0, "in", records=3)
    clock.now += 5.0
    assert look([source], 0, unread=[0]) == [False], "no record waits"
    assert look([source], 1, unread=[1]) == [False]
    clock.now += 1.5
    assert look([source], 2, unread=[2]) == [False]
    clock.now += 0.5
    assert look([source], 2, unread=[2]) == [True]
    assert look([source], 3, unread=[1]) == [False]


def test_records_of_an_unknown_number_wait_for_the_interval(tmp_path: Path, clock: Clock) -> None:
    (source,) = waits(tmp_path, 2.0, "in", records=1)
    assert look([source], 1, unread=[None]) == [False]
    clock.now += 2.0
    assert look([source], 1, unread=[None]) == [True]
