"""Spark's progress reports as metrics."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.sdk import ReplayableSource


class Listener(StreamingQueryListener):
    """Counts what sources delivered, how far behind they are, and where watermarks stand.

    A source that several queries read is counted once.
    """

    def __init__(self, plan: Plan, metrics: Metrics) -> None:
        self.plan = plan
        self.metrics = metrics
        self.seen: dict[str, int] = {}
        self.read: Counter[tuple[str, str]] = Counter()
        self.queries = {query.name: query for query in plan.queries}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = json.loads(event.progress.json)
        query = self.queries.get(progress.get("name") or "")
        if query is None:
            return
        self.metrics.batches += 1
        watermark = progress.get("eventTime", {}).get("watermark")
        if watermark:
            self.metrics.watermarks[query.name] = watermark
        seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
        for name, source in zip(self._sources(query), progress.get("sources", []), strict=False):
            self._count(name, query.name, source, seconds)
        self.seen[query.name] = int(progress.get("batchId", -1))

    def catch_up(self, running: StreamingQuery, timeout: float = 2.0) -> None:
        """Waits until the last report of a query is counted: Spark sends them by the way."""
        last, until = running.lastProgress, time.monotonic() + timeout
        while last and self.seen.get(last["name"], -1) < last["batchId"]:
            if time.monotonic() > until:
                return
            time.sleep(0.01)

    def _sources(self, query: Query) -> list[str]:
        nodes = self.plan.nodes
        return [n for n in query.within if nodes[n].kind == "source" and not nodes[n].static]

    def _count(self, name: str, query: str, progress: Mapping[str, Any], seconds: float) -> None:
        """Rows that several queries read count once: those of the query that is furthest."""
        flow = self.metrics.flows[name]
        self.read[name, query] += int(progress.get("numInputRows") or 0)
        if self.read[name, query] > flow.rows:
            flow.add(self.read[name, query] - flow.rows)
            flow.batch_seconds = seconds
        source = self.plan.nodes[name].source
        at, latest = _offset(progress.get("endOffset")), _offset(progress.get("latestOffset"))
        if isinstance(source, ReplayableSource) and at is not None and latest is not None:
            flow.lag = source.lag(at, latest)
            flow.lag_unit = source.unit


def _offset(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        given = json.loads(given)
    if not isinstance(given, dict):
        return None
    return {key: value for key, value in given.items() if key != "closed"}
