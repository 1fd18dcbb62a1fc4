"""The gap before a batch: sources of a query that are asked one after another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.engine.sources import gap
from penstock.engine.sources.gap import Session, make_gap, prepare_gap


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


def sessions(checkpoint: Path, seconds: float, *nodes: str) -> list[Session]:
    prepare_gap(checkpoint)
    made = make_gap(checkpoint, seconds)
    assert made is not None
    return [Session(made, node) for node in nodes]


def look(sources: Sequence[Session], *ends: int) -> list[bool]:
    """Returns whether each source starts a batch up to its latest offset."""
    pairs = zip(sources, ends, strict=True)
    return [source.is_over({"end": end}) for source, end in pairs]


def test_a_batch_starts_after_the_gap(tmp_path: Path, clock: Clock) -> None:
    (source,) = sessions(tmp_path, 2.0, "in")
    assert look([source], 1) == [False]
    clock.now += 1.8
    assert look([source], 2) == [False], "a record within the gap"
    clock.now += 1.8
    assert look([source], 2) == [False]
    clock.now += 0.2
    assert look([source], 2) == [True]
    assert look([source], 3) == [False], "the next session"


def test_all_sources_of_a_query_start_together(tmp_path: Path, clock: Clock) -> None:
    both = sessions(tmp_path, 2.0, "a/b", "a b")
    assert look(both, 1, 1) == [False, False]
    clock.now += 1.5
    assert look(both, 1, 2) == [False, False]
    clock.now += 1.5
    assert look(both, 1, 2) == [False, False], "the other source had a record 1.5 s ago"
    clock.now += 1.0
    assert look(both, 1, 3) == [True, True], "a record just now is part of the session"
    assert look(both, 1, 3) == [False, False]


def test_a_start_has_a_session_of_its_own(tmp_path: Path, clock: Clock) -> None:
    (source,) = sessions(tmp_path, 2.0, "gone")
    clock.now = 1e9
    look([source], 1)
    clock.now = 100.0
    (source,) = sessions(tmp_path, 2.0, "in")
    look([source], 1)
    clock.now += 2.0
    assert look([source], 1) == [True]


def test_no_gap(tmp_path: Path) -> None:
    assert make_gap(tmp_path, None) is None
    assert make_gap(None, 1.0) is None
