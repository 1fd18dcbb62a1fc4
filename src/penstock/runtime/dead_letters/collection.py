"""Collection of dead letters during a run, with metrics, limits and retries."""

from __future__ import annotations

import threading
import time

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.runtime.dead_letters.store import Collector, DeadLetters
from penstock.runtime.retry import RetryState, retry
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import StopRequest
from penstock.spec.runtime_models import Restart


class DeadLetterCollection:
    """The collection of dead letters of a run, from the spool to their store.

    Called by the run and by the threads of its queries.
    """

    def __init__(
        self,
        plan: Plan,
        policy: Restart,
        state: StateDirectory,
        metrics: Metrics,
        log: Log,
        stop: StopRequest,
    ) -> None:
        self.collector = Collector(plan, state)
        self._plan, self._metrics, self._log, self._stop = plan, metrics, log, stop
        self._store = DeadLetters(state.dead_letters)
        self._lock = threading.Lock()
        self._policy = policy
        self._retries = RetryState(self._policy, log, "retrying")
        self._moves = 0
        self._due = 0.0

    def collect(self, query: str, through: int | None) -> bool:
        """Moves dead letters of committed batches to their store. Returns whether any existed."""
        with self._lock:
            counts = self.collector.collect(query, through)
            self._moves += bool(counts)
            self.collector.tick()
        for node, count in counts.items():
            nodes = self._plan.nodes
            flow = self._metrics.flow(node, nodes[node].kind, nodes[node].type)
            flow.dead_letters += count
            self._log.warning("dead letters", node=node, count=count)
        self._count_untimed(query)
        self._count_late(query)
        limits = self._plan.spec.runtime.dead_letters
        self._store.enforce_limits(limits.max_size, limits.retention)
        return bool(counts)

    def _count_untimed(self, query: str) -> None:
        """Counts rows without an event time: the maximum of the queries of a node."""
        for (reader, name), count in self.collector.untimed.items():
            if reader == query:
                node = self._plan.nodes[name]
                flow = self._metrics.flow(name, node.kind, node.type)
                flow.untimed = max(flow.untimed, count)

    def _count_late(self, query: str) -> None:
        """Counts the late rows of a query by node. A row that two queries drop counts in both."""
        late = self._metrics.late.get(query)
        if late is not None and late.exact:
            counts = self.collector.late.items()
            late.nodes |= {name: count for (reader, name), count in counts if reader == query}
            for name in late.nodes:
                self._metrics.flow(name, self._plan.nodes[name].kind, self._plan.nodes[name].type)

    def complete(self) -> None:
        """Completes the `dead_letter` sink at the end of a run."""
        with self._lock:
            self.collector.complete()

    def collect_with_retries(self, query: str, through: int | None) -> bool:
        """Collects as `collect`; a transient failure is retried with backoff."""
        return retry(lambda: self.collect(query, through), self._policy, self._log, self._stop)

    def collect_when_due(self, query: str, through: int | None) -> bool:
        """Collects as `collect`, but not before the retry of a transient failure is due.

        Raises the last error when the policy allows no further attempt.
        """
        if time.monotonic() < self._due:
            return False
        try:
            return self.collect(query, through)
        except PenstockError as error:
            due = self._retries.next_attempt(error, self._moves, query=query)
            if due is None:
                raise
            self._due = due
            return False
