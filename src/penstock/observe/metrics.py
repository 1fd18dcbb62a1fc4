"""What a run has done so far, by source and sink: the numbers behind the live view and `status`."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

WINDOW = 10.0
"""Seconds over which a rate is taken."""


@dataclass
class Flow:
    """What went through a source or sink."""

    kind: str
    type: str
    rows: int = 0
    dead_letters: int = 0
    lost: int = 0
    """Messages that a receiving source could not take, by a sender that cannot wait."""
    lag: int | None = None
    lag_unit: str = "records"
    last_batch: float | None = None
    batch_seconds: float | None = None
    _marks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=1000))

    def add(self, rows: int) -> None:
        """A batch brought rows."""
        self.rows += rows
        self.last_batch = time.time()
        self._marks.append((self.last_batch, rows))

    def rate(self, started: float) -> float:
        """Rows per second over the last seconds."""
        since = max(time.time() - WINDOW, started)
        rows = sum(count for at, count in self._marks if at >= since)
        return rows / max(time.time() - since, 0.001)


class Metrics:
    """The flows of a run, written by queries' threads and read by the view."""

    def __init__(self) -> None:
        self.started = time.time()
        self.flows: dict[str, Flow] = {}
        self.batches = 0
        self.restarts = 0
        self.watermarks: dict[str, str] = {}
        self._lock = threading.Lock()

    def flow(self, name: str, kind: str, type_: str) -> Flow:
        """The flow of a node, made when it is first asked for."""
        with self._lock:
            return self.flows.setdefault(name, Flow(kind, type_))

    @property
    def dead_letters(self) -> int:
        return sum(flow.dead_letters for flow in self.flows.values())

    def snapshot(self) -> dict[str, Any]:
        """All numbers as JSON."""
        with self._lock:
            flows = dict(self.flows)
        return {
            "seconds": round(time.time() - self.started, 1),
            "batches": self.batches,
            "restarts": self.restarts,
            "dead_letters": self.dead_letters,
            "watermarks": dict(self.watermarks),
            "nodes": {
                name: {
                    "kind": flow.kind,
                    "type": flow.type,
                    "rows": flow.rows,
                    "rows_per_second": round(flow.rate(self.started), 1),
                    "lag": flow.lag,
                    "lag_unit": flow.lag_unit,
                    "dead_letters": flow.dead_letters,
                    "lost": flow.lost,
                    "last_batch": flow.last_batch,
                    "batch_seconds": flow.batch_seconds,
                }
                for name, flow in flows.items()
            },
        }
