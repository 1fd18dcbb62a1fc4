"""Watermarks of idle sources: they follow the least of the others, and never move back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.watermarks import idle
from penstock.engine.watermarks.idle import IdleSources, IdleTime
from penstock.engine.watermarks.partition_watermarks import partitions_id

A, B, C = (f"7c9e6679-7425-40de-944b-e07fc1f90ae{digit}" for digit in "123")
NAMES = ("a", "b", "c")


class Run:
    """A query of three sources with an idle time of ten seconds, at a time that tests set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **watermarks: int) -> None:
        ids = dict(zip(NAMES, (A, B, C), strict=True))
        self.known = {ids[name]: watermark for name, watermark in watermarks.items()}
        self.now, self.ends = 0.0, dict.fromkeys(NAMES, 0)
        tracker = SimpleNamespace(watermarks=self._watermarks, set=self.known.__setitem__)
        monkeypatch.setattr(idle, "WatermarkTracker", lambda *_: tracker)
        progress = SimpleNamespace(json=self._progress)
        query: Any = SimpleNamespace(_jsq=SimpleNamespace(lastProgress=lambda: progress))
        times = tuple(IdleTime(ids[name], frozenset({name}), 10.0) for name in NAMES)
        session: Any = None
        self.sources = IdleSources(session, query, NAMES, times, clock=lambda: self.now)

    def _watermarks(self) -> Mapping[str, int]:
        return dict(self.known)

    def _progress(self) -> str:
        return json.dumps({"sources": [{"endOffset": self.ends[name]} for name in NAMES]})

    def advance(self, now: float, *active: str) -> list[int]:
        """Returns the watermarks at a time at which some sources have new rows."""
        self.now = now
        for name in active:
            self.ends[name] += 1
        self.sources.advance()
        return [self.known[id_] for id_ in (A, B, C) if id_ in self.known]


def test_an_idle_source_follows_the_least_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, a=5, b=20, c=30)
    assert run.advance(0, "a", "b", "c") == [5, 20, 30]
    assert run.advance(9.9, "b", "c") == [5, 20, 30]
    assert run.advance(10.1, "b", "c") == [20, 20, 30]


def test_an_idle_source_that_is_ahead_of_one_other_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, a=25, b=20, c=30)
    run.advance(0, "a", "b", "c")
    assert run.advance(11, "b", "c") == [25, 20, 30]


def test_nothing_moves_while_all_sources_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, a=5, b=20, c=30)
    run.advance(0, "a", "b", "c")
    assert run.advance(11) == [5, 20, 30]


def test_the_watermark_of_idle_partitions_follows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, a=5, b=20)
    run.known[partitions_id(A)] = 3
    run.advance(0, "a", "b")
    run.advance(11, "b")
    assert run.known[partitions_id(A)] == run.known[A] == 20
