"""Idle sources: a source without new rows does not hold back the watermark of a query.

The watermark of a query is the least of the watermarks of its sources. In the tracker of the query
an idle one follows the others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.watermarks.partition_watermarks import partitions_id
from penstock.engine.watermarks.watermark_tracker import WatermarkTracker


@dataclass(frozen=True)
class IdleTime:
    """The time after which the sources of a watermark are idle, in seconds."""

    watermark: str
    """The ID of the watermark in Spark."""
    sources: frozenset[str]
    seconds: float


@dataclass
class IdleSources:
    """The idle sources of a running query. `sources` are in the order of Spark's progress."""

    session: SparkSession
    query: StreamingQuery
    sources: tuple[str, ...]
    times: tuple[IdleTime, ...]
    clock: Callable[[], float] = time.monotonic
    _ends: dict[str, Any] = field(default_factory=dict)
    _active: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._active = dict.fromkeys(self.sources, self.clock())

    def advance(self) -> None:
        """Moves the watermarks of idle sources to the least of the others.

        The watermark of the query follows at the end of its next batch.
        """
        if not self.times:
            return
        try:
            self._observe(self.query._jsq.lastProgress())
            idle = {time.watermark for time in self.times if self._is_idle(time)}
            if idle:
                self._move(idle)
        except Py4JError:
            if self.query.isActive:
                raise

    def _observe(self, progress: Any) -> None:
        """Notes the sources whose offset has changed since the last call."""
        reports = json.loads(progress.json())["sources"] if progress is not None else []
        for name, report in zip(self.sources, reports, strict=False):
            end = report.get("endOffset")
            if name in self._ends and self._ends[name] != end:
                self._active[name] = self.clock()
            self._ends[name] = end

    def _is_idle(self, time: IdleTime) -> bool:
        latest = max(self._active.get(name, 0.0) for name in time.sources)
        return self.clock() - latest >= time.seconds

    def _move(self, idle: set[str]) -> None:
        idle = idle | {partitions_id(watermark) for watermark in idle}
        tracker = WatermarkTracker(self.session, self.query)
        known = tracker.watermarks()
        others = [watermark for name, watermark in known.items() if name not in idle]
        if not others:
            return
        for name in idle & known.keys():
            if known[name] < min(others):
                tracker.set(name, min(others))
