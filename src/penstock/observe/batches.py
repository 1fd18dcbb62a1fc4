"""Finished batches of a run: their rows, durations by phase and watermarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

PHASES: Mapping[str, tuple[str, ...]] = {
    "offsets": ("latestOffset",),
    "log": ("walCommit",),
    "planning": ("getBatch", "queryPlanning"),
    "processing": ("addBatch",),
    "commit": ("commitOffsets", "commitBatch"),
}
"""The phases of a batch in their order, each with Spark's names of its parts.

The time between the phases is the phase `other`.
"""
OTHER = "other"
UNREPORTED = 8
"""The batches of a query whose parts are kept until Spark reports the batch."""


@dataclass(frozen=True)
class SinkPart:
    """The part of a sink in a batch. Times are Unix times; the end is the commit of the sink."""

    began: float
    ended: float
    rows: int
    bad: int


@dataclass(frozen=True)
class FinishedBatch:
    """A batch that all sinks have committed. Times are Unix times, durations are seconds.

    `number` counts the batches of the state, and `sinks` has those that this attempt has written.
    `watermark` is that of the query before the batch; None without one.
    """

    query: str
    number: int
    began: float
    seconds: float
    phases: Mapping[str, float]
    sinks: Mapping[str, SinkPart] = field(default_factory=dict)
    watermark: float | None = None
    state_rows: int | None = None

    @property
    def rows(self) -> int:
        """The rows that all sinks have written."""
        return sum(part.rows for part in self.sinks.values())


@dataclass(frozen=True)
class FailedBatch:
    """An attempt of a batch that has failed."""

    query: str
    number: int
    began: float
    ended: float
    code: str
    message: str


BatchObserver = Callable[[FinishedBatch | FailedBatch], None]


class BatchReports:
    """The batches of a run, reported to observers.

    The thread of a query adds the parts of sinks. Spark reports the durations of the batch later,
    by another thread.
    """

    def __init__(self) -> None:
        self.observers: list[BatchObserver] = []
        self._parts: dict[str, dict[int, dict[str, SinkPart]]] = {}
        self._marks: dict[str, float] = {}

    def begin(self, query: str, number: int) -> None:
        """Begins an attempt of a batch."""
        batches = self._parts.setdefault(query, {})
        batches[number] = {}
        for earlier in [each for each in batches if each <= number - UNREPORTED]:
            batches.pop(earlier, None)
        self._marks[query] = time.time()

    def add(self, query: str, number: int, sink: str, rows: int, bad: int) -> None:
        """Adds the part of a sink, which begins at the end of the part before."""
        now = time.time()
        parts = self._parts.setdefault(query, {}).setdefault(number, {})
        parts[sink] = SinkPart(self._marks.get(query, now), now, rows, bad)
        self._marks[query] = now

    def finish(self, event: Mapping[str, Any]) -> None:
        """Reports a batch, from the JSON of its progress event."""
        query, number = str(event["name"]), int(event.get("batchId", -1))
        parts = self._parts.get(query, {}).pop(number, {})
        states = event.get("stateOperators") or []
        self._report(
            FinishedBatch(
                query,
                number,
                datetime.fromisoformat(event["timestamp"]).timestamp(),
                duration(event),
                phase_durations(event),
                parts,
                watermark(event),
                sum(int(each.get("numRowsTotal") or 0) for each in states) if states else None,
            )
        )

    def fail(self, query: str, number: int, began: float, code: str, message: str) -> None:
        """Reports an attempt of a batch that has failed."""
        self._report(FailedBatch(query, number, began, time.time(), code, message))

    def _report(self, batch: FinishedBatch | FailedBatch) -> None:
        for observer in self.observers:
            observer(batch)


def duration(event: Mapping[str, Any]) -> float:
    """Returns the duration of a batch, from the JSON of its progress event."""
    return float(event.get("durationMs", {}).get("triggerExecution", 0)) / 1000


def phase_durations(event: Mapping[str, Any]) -> dict[str, float]:
    """Returns the durations of the phases of a batch, from the JSON of its progress event."""
    parts = event.get("durationMs", {})
    phases = {
        phase: sum(parts.get(name, 0) for name in names) / 1000 for phase, names in PHASES.items()
    }
    rest = duration(event) - sum(phases.values())
    return {**phases, OTHER: max(round(rest, 3), 0.0)}


def watermark(event: Mapping[str, Any]) -> float | None:
    """Returns the watermark; None before the first event time, which Spark shows as 1970."""
    text = event.get("eventTime", {}).get("watermark")
    seconds = datetime.fromisoformat(text).timestamp() if text else 0.0
    return seconds if seconds > 0 else None
