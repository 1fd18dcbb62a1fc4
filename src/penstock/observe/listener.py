"""Spark's progress reports as metrics."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.sdk import ReplayableSource


class Listener(StreamingQueryListener):
    """Counts what sources delivered, how far behind they are, and where watermarks stand.

    `sources` has the sources of each query in the order of Spark's reports, `skipped` the rows, by
    query and source, that sources left out before Spark saw them. A source that several queries
    read is counted once, and the row that closes its windows not at all.

    Spark calls it with Java's events. PySpark's listeners have them as Python objects, for which
    each report is taken apart by hundreds of calls into Java.
    """

    class Java:
        """How Py4J knows what it is."""

        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]

    def __init__(self, plan: Plan, metrics: Metrics, skipped: Counter[tuple[str, str]]) -> None:
        self.plan = plan
        self.metrics = metrics
        self.skipped = skipped
        self.sources: dict[str, tuple[str, ...]] = {}
        self.seen: dict[str, int] = {}
        self.read: Counter[tuple[str, str]] = Counter()
        self.queries = {query.name: query for query in plan.queries}
        self._counting = threading.Lock()

    @cached_property
    def _jlistener(self) -> Any:
        """What PySpark gives to Spark."""
        java: Any = SparkContext._jvm
        return java.PythonStreamingQueryListenerWrapper(self)

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        progress = json.loads(event.progress().json())
        query = self.queries.get(progress.get("name") or "")
        if query is None:
            return
        self.metrics.batches += 1
        watermark = progress.get("eventTime", {}).get("watermark")
        if watermark:
            self.metrics.watermarks[query.name] = watermark
        seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
        names = self.sources.get(query.name, ())
        for name, source in zip(names, progress.get("sources", []), strict=False):
            self._count(name, query.name, source, seconds)
        self.seen[query.name] = int(progress.get("batchId", -1))

    def catch_up(self, running: StreamingQuery, timeout: float = 2.0) -> None:
        """Waits until the last batch of a query is counted: Spark sends its reports by the way.

        What it keeps of an idle query, it does not send.
        """
        reports = (json.loads(each.json()) for each in reversed(running._jsq.recentProgress()))
        last = next((each for each in reports if "addBatch" in each["durationMs"]), None)
        until = time.monotonic() + timeout
        while last and self.seen.get(last["name"], -1) < last["batchId"]:
            if time.monotonic() > until:
                return
            time.sleep(0.01)

    def count_skipped(self, query: str) -> None:
        """More rows of a committed batch are in `skipped`."""
        for name in self.sources.get(query, ()):
            self._count_rows(name, query)

    def _count(self, name: str, query: str, progress: Mapping[str, Any], seconds: float) -> None:
        at, latest = _offset(progress.get("endOffset")), _offset(progress.get("latestOffset"))
        if at != _offset(progress.get("startOffset")):
            self.read[name, query] += int(progress.get("numInputRows") or 0)
        flow = self.metrics.flows[name]
        if self._count_rows(name, query):
            flow.batch_seconds = seconds
        source = self.plan.nodes[name].source
        if isinstance(source, ReplayableSource) and at is not None and latest is not None:
            flow.lag = source.lag(at, latest)
            flow.lag_unit = source.unit

    def _count_rows(self, name: str, query: str) -> bool:
        """Rows that several queries read count once: those of the query that is furthest."""
        flow = self.metrics.flows[name]
        with self._counting:
            more = self.read[name, query] + self.skipped[query, name] - flow.rows
            if more > 0:
                flow.add(more)
        return more > 0


def _offset(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        given = json.loads(given)
    if not isinstance(given, dict):
        return None
    return {key: value for key, value in given.items() if key != "closed"}
