"""Metrics of a query from Spark's progress events: batch durations, watermark, late rows, state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.observe.batches import duration, phase_durations, watermark

DURATIONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the histogram of batch durations, in seconds."""


@dataclass(frozen=True)
class QueryProgress:
    """The batches of a query in this run.

    `durations` are the numbers of batches by the bounds `DURATIONS`; the last one is above all
    bounds. `phases` are the seconds of each phase of all batches. `late_rows` is Spark's count of
    the rows dropped in windows, joins and deduplication. `state_rows` and `state_bytes` are None
    for a query without state. `watermark` is a Unix time. `open_windows` are the groups of
    aggregations in the state.
    """

    batches: int = 0
    seconds: float = 0.0
    durations: tuple[int, ...] = (0,) * (len(DURATIONS) + 1)
    phases: Mapping[str, float] = field(default_factory=dict)
    late_rows: int = 0
    state_rows: int | None = None
    state_bytes: int | None = None
    open_windows: int = 0
    watermark: float | None = None

    def add(self, event: Mapping[str, Any]) -> QueryProgress:
        """Returns the progress after a batch, from the JSON of its progress event."""
        seconds = duration(event)
        bucket = sum(seconds > bound for bound in DURATIONS)
        durations = (n + (index == bucket) for index, n in enumerate(self.durations))
        states = event.get("stateOperators") or []
        return QueryProgress(
            batches=self.batches + 1,
            seconds=self.seconds + seconds,
            durations=tuple(durations),
            phases={
                phase: round(self.phases.get(phase, 0.0) + part, 3)
                for phase, part in phase_durations(event).items()
            },
            late_rows=self.late_rows + _total(states, "numRowsDroppedByWatermark"),
            state_rows=_total(states, "numRowsTotal") if states else self.state_rows,
            state_bytes=_total(states, "memoryUsedBytes") if states else self.state_bytes,
            open_windows=_open_windows(states) if states else self.open_windows,
            watermark=watermark(event) or self.watermark,
        )


def _total(states: list[Mapping[str, Any]], name: str) -> int:
    return sum(int(state.get(name) or 0) for state in states)


def _open_windows(states: list[Mapping[str, Any]]) -> int:
    aggregations = [s for s in states if "statestoresave" in str(s.get("operatorName")).lower()]
    return _total(aggregations, "numRowsTotal")
