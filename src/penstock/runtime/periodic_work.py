"""Periodic work of a run, beside the batches of its queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf

from penstock.plan.model import Plan
from penstock.runtime.acknowledge import Acknowledger
from penstock.runtime.backlog import StalledBacklog
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.dead_letters.tables import TableDeadLetters
from penstock.runtime.query_run import QueryRun
from penstock.runtime.run_options import EndOfRun
from penstock.runtime.state.directory import StateDirectory

TICK_SECONDS = 1.0


class PeriodicWork:
    """The work of every second: dead letters, acknowledgement, idle queries, taps and the status.

    It shares its parts with the events of batches.
    """

    def __init__(
        self, plan: Plan, state: StateDirectory, events: BatchEvents, until: EndOfRun
    ) -> None:
        self._plan, self._state, self._events, self._until = plan, state, events, until
        self._metrics, self._listener = events.metrics, events.listener
        self._dead_letters = events.dead_letters
        self._table_letters = TableDeadLetters(plan, state)
        self._acknowledger = Acknowledger(plan, state, events.log)
        self._backlog = StalledBacklog(plan, state, events.metrics)
        self._last_tick = -inf

    def is_due(self) -> bool:
        """Returns whether a second has passed since the last tick."""
        return time.monotonic() - self._last_tick >= TICK_SECONDS

    def tick(self, runs: Sequence[QueryRun]) -> None:
        """Does the work once for the queries that run, and writes the status.

        Raises StateError if another run has taken over the state.
        """
        self._last_tick = time.monotonic()
        if self._state.storage.lost is not None:
            raise self._state.storage.lost
        self._events.stop.poll()
        self._events.taps.poll()
        for run in runs:
            self._tick_if_idle(run)
            if run.active:
                self._events.failing_sinks.poll(run.query.name)
            run.detect_waiting()
            if self._until == "stopped" and run.active:
                run.started.idle.advance()
        self._collect_tables(self._dead_letters.collect_when_due)
        self.acknowledge()
        self._backlog.count([run.query for run in runs if run.execution.stalled])
        self._metrics.stopping = self._events.stop.requested.is_set()
        snapshot = self._metrics.snapshot()
        self._events.side_outputs.pass_progress(snapshot)
        self._state.write("status.json", snapshot)

    def acknowledge(self) -> None:
        """Acknowledges the batches that all queries have committed, and counts the others."""
        self._acknowledger.acknowledge()
        for name, count in self._acknowledger.pending().items():
            self._metrics.flows[name].pending = count

    def collect_committed(self, query: str) -> None:
        """Collects the dead letters of the committed batches of a query, and counts its rows."""
        self._dead_letters.collect_with_retries(query, self._state.committed(query))
        self._listener.count_rows(query)

    def collect_tables(self) -> None:
        """Collects the dead letters of tables, and counts the rows of static tables."""
        self._collect_tables(self._dead_letters.collect_with_retries)

    def close(self) -> None:
        """Closes the sources on the driver."""
        self._acknowledger.close()
        self._backlog.close()

    def _tick_if_idle(self, run: QueryRun) -> None:
        lock = run.started.runner.lock
        if lock.acquire(blocking=False):
            try:
                name = run.query.name
                self._dead_letters.collect_when_due(name, self._state.committed(name))
                self._listener.count_rows(name)
                self._events.sink_timer.tick(run.query)
            finally:
                lock.release()

    def _collect_tables(self, collect: Callable[[str, int | None], bool]) -> None:
        self._table_letters.collect(collect)
        for node in self._plan.of("source"):
            if node.static and node.lookup is None:
                flow = self._metrics.flows[node.name]
                rows = self._dead_letters.collector.read[node.name, node.name] - flow.rows
                if rows > 0:
                    flow.add(rows)
