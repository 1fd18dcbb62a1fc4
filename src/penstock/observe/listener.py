"""Metrics from Spark's progress events."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar

from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import ConnectError
from penstock.observe.metrics import Metrics
from penstock.observe.progress import QueryProgress
from penstock.plan.model import Plan
from penstock.sdk import ReplayableSource


class Listener(StreamingQueryListener):
    """A listener that updates rows, lag and watermarks from the progress events of queries.

    `sources` are the sources of each query in the order of Spark's events. `read` counts the rows
    of committed batches by query and source. A source of several queries is counted once. Spark's
    own counts contain a row as often as the row is computed, by each sink or for a sort.

    Receives the events as Java objects. PySpark's own listener converts each event to Python
    objects, by hundreds of calls into Java.
    """

    class Java:
        """The Java interface that Py4J implements by this class."""

        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]

    def __init__(self, plan: Plan, metrics: Metrics, read: Counter[tuple[str, str]]) -> None:
        self.plan = plan
        self.metrics = metrics
        self.read = read
        self.sources: dict[str, tuple[str, ...]] = {}
        self.last_batches: dict[str, int] = {}
        self.queries = {query.name: query for query in plan.queries}
        self._counting = threading.Lock()
        self._ended = threading.Event()

    @cached_property
    def _jlistener(self) -> Any:
        """The Java listener that PySpark registers with Spark."""
        java: Any = SparkContext._jvm
        return java.PythonStreamingQueryListenerWrapper(self)

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        self._ended.set()

    def onQueryProgress(self, event: Any) -> None:
        progress = json.loads(event.progress().json())
        query = self.queries.get(progress.get("name") or "")
        if query is None:
            return
        self.metrics.batches += 1
        earlier = self.metrics.progress.get(query.name, QueryProgress())
        self.metrics.progress[query.name] = current = earlier.add(progress)
        if query.name in self.metrics.late:
            self.metrics.late[query.name].by_spark = current.late_rows
        watermark = progress.get("eventTime", {}).get("watermark")
        if watermark:
            self.metrics.watermarks[query.name] = watermark
        seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
        names = self.sources.get(query.name, ())
        for name, source in zip(names, progress.get("sources", []), strict=False):
            self._measure(query.name, name, source, seconds)
        self.metrics.batch_reports.finish(progress)
        self.last_batches[query.name] = int(progress.get("batchId", -1))

    def await_end(self, timeout: float) -> bool:
        """Waits for the end of a query, at most `timeout` seconds. Returns whether one ended."""
        ended = self._ended.wait(timeout)
        if ended:
            self._ended.clear()
        return ended

    def catch_up(self, running: StreamingQuery, timeout: float = 2.0) -> None:
        """Waits until the last batch of a query is counted, at most `timeout` seconds.

        Spark sends progress events asynchronously, and none for idle triggers.
        """
        recent = reversed(running._jsq.recentProgress())
        reports = (json.loads(progress.json()) for progress in recent)
        last = next((report for report in reports if "addBatch" in report["durationMs"]), None)
        deadline = time.monotonic() + timeout
        while last and self.last_batches.get(last["name"], -1) < last["batchId"]:
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)

    def count_rows(self, query: str) -> None:
        """Counts rows newly added to `read` for a query: the maximum of the source's queries."""
        for name in self.sources.get(query, ()):
            flow = self.metrics.flows[name]
            with self._counting:
                new_rows = self.read[query, name] - flow.rows
                if new_rows > 0:
                    flow.add(new_rows)

    def _measure(self, query: str, name: str, progress: Mapping[str, Any], seconds: float) -> None:
        """Updates the duration of the last batch and the unread records of a source."""
        end, latest = _offset(progress.get("endOffset")), _offset(progress.get("latestOffset"))
        flow = self.metrics.flows[name]
        if progress.get("numInputRows") and end != _offset(progress.get("startOffset")):
            flow.batch_seconds = seconds
        source = self.plan.nodes[name].source
        if isinstance(source, ReplayableSource) and end is not None and latest is not None:
            unread = None
            with suppress(ConnectError):  # a source that fails here fails in its query, too
                unread = source.lag(end, latest)
            if unread is not None:
                flow.measure(query, unread, source.lag_unit)


def _offset(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, dict):
        return None
    return {key: part for key, part in value.items() if key != "closed"}
