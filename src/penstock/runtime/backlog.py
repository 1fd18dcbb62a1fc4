"""Backlog: unread records when a run starts, and of queries that do not advance."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.core.errors import PenstockError
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.runtime.acknowledge import batch_offsets, committed_offsets
from penstock.runtime.run_options import Until
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import ReplayableSource

if TYPE_CHECKING:
    from penstock.engine.spark_session.jvm import Length

LARGE_BACKLOG = 8_000_000
"""The number of records that take minutes."""
LARGE_STATEFUL_BACKLOG = 1_000_000
"""The same for stateful transforms, where a record takes several times as much CPU in Java."""
PERIOD = 5.0
"""Seconds between two counts of the unread records of a query that does not advance."""


def expected_length(plan: Plan, state: StateDirectory, until: Until) -> Length:
    """Returns the expected duration of a run, by its sources and their backlog."""
    if not plan.bounded and until != "caught_up":
        return "endless"
    stateful = any(node.stateful for node in plan.nodes.values())
    many = LARGE_STATEFUL_BACKLOG if stateful else LARGE_BACKLOG
    return "minutes" if count_backlog(plan, state) >= many else "seconds"


def count_backlog(plan: Plan, state: StateDirectory) -> int:
    """Returns the number of unread records of all sources that count records.

    Works on copies of the sources, which keep their initial state. An unreachable source counts
    as 0.
    """
    return sum(_node_backlog(node, plan, state) for node in plan.of("source") if not node.static)


def _node_backlog(node: Node, plan: Plan, state: StateDirectory) -> int:
    source = pickle.loads(pickle.dumps(node.source))
    if not isinstance(source, ReplayableSource) or source.lag_unit != "records":
        return 0
    queries = [query.name for query in plan.queries if node.name in query.stream_nodes]
    try:
        committed = [committed_offsets(state, query).get(node.name) for query in queries]
        starts = [source.initial_offset() if offset is None else offset for offset in committed]
        lags = (source.lag(start, source.latest_offset(start)) or 0 for start in starts)
        return max(lags, default=0)
    except PenstockError:
        return 0
    finally:
        source.close()


class StalledBacklog:
    """The unread records of queries that do not advance, in the metrics of their sources.

    Spark reports a lag at the end of a batch. During a long batch, and between its attempts, a
    thread counts the records after the batch, on copies of the sources.
    """

    def __init__(self, plan: Plan, state: StateDirectory, metrics: Metrics) -> None:
        self._state, self._metrics = state, metrics
        self._sources: dict[str, ReplayableSource[Any]] = {
            node.name: pickle.loads(pickle.dumps(node.source))
            for node in plan.of("source")
            if not node.static and isinstance(node.source, ReplayableSource)
        }
        self._thread: threading.Thread | None = None
        self._due = 0.0

    def count(self, queries: Sequence[Query]) -> None:
        """Starts to count, unless a count is under way or the last one began within `PERIOD`."""
        is_counting = self._thread is not None and self._thread.is_alive()
        if queries and not is_counting and time.monotonic() >= self._due:
            self._due = time.monotonic() + PERIOD
            self._thread = threading.Thread(target=self._count, args=(queries,), daemon=True)
            self._thread.start()

    def close(self, timeout: float = 1.0) -> None:
        """Closes the sources after a count under way; leaves it to its timeouts if it is slow."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return
        for source in self._sources.values():
            source.close()

    def _count(self, queries: Sequence[Query]) -> None:
        for query in queries:
            planned = self._state.planned(query.name)
            offsets = {} if planned is None else batch_offsets(self._state, query.name, planned)
            for name in offsets.keys() & self._sources.keys():
                source, offset = self._sources[name], offsets[name]
                try:
                    lag = source.lag(offset, source.latest_offset(offset))
                except Exception:  # a source that fails here fails in its query, with an error
                    continue
                if lag is not None:
                    self._metrics.flows[name].measure(query.name, lag, source.lag_unit)
