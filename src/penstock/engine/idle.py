"""Idle sources: a source without new rows does not hold back the watermark of a query.

The watermark of a query is the least of the watermarks of its sources. Spark keeps those in the
tracker of the query, where an idle one follows the others. The watermark of the query moves at the
end of a batch, as the watermark of a batch that Spark has considered cannot change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.spark_plan import scala_items


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
        tracker = _field(self.query._jsq.streamingQuery(), "watermarkTracker")
        known = _watermarks(tracker) if tracker is not None else {}
        others = [watermark for name, watermark in known.items() if name not in idle]
        if not others:
            return
        target = min(others, key=_millis)
        watermarks = _field(tracker, "operatorToWatermarkMap")
        for key in scala_items(watermarks.keys().toSeq()):
            name = str(key.toString())
            if name in idle and _millis(known[name]) < _millis(target):
                watermarks.put(key, target)


def _watermarks(tracker: Any) -> Mapping[str, Any]:
    """Returns the watermarks of a query by ID, as options of Scala."""
    known = tracker.watermarkMap()
    return {str(key.toString()): known.apply(key) for key in scala_items(known.keys().toSeq())}


def _millis(watermark: Any) -> int:
    return 0 if watermark.isEmpty() else int(watermark.get())


def _field(owner: Any, name: str) -> Any:
    """Returns a private field of a Java object."""
    field_ = owner.getClass().getDeclaredField(name)
    field_.setAccessible(True)
    return field_.get(owner)
