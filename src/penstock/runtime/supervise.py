"""Watching the queries of a run: restarts, stops, dead letters and the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import SparkSession

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.engine.build import Builder
from penstock.engine.start import Running, Until, start
from penstock.observe.listener import Listener
from penstock.observe.metrics import Metrics
from penstock.plan.model import Node, Plan, Query
from penstock.runtime.acknowledge import Acknowledger
from penstock.runtime.dead_letters import Collector, DeadLetters
from penstock.runtime.diagnose import diagnose
from penstock.runtime.receivers import Receivers
from penstock.runtime.restart import Tries, patiently
from penstock.runtime.sink_clock import SinkClock
from penstock.runtime.state import StateDirectory, now
from penstock.runtime.stop import Stopped, StopRequest

Ending = Literal["stopped", "complete", "caught_up", "failed"]
PAUSE = 0.1
TICK = 1.0
FINISH_TIMEOUT = 60.0


@dataclass
class Outcome:
    """How a run ended."""

    ending: Ending
    errors: dict[str, PenstockError] = field(default_factory=dict)
    reason: str | None = None

    @property
    def exit_code(self) -> int:
        """Of the gravest error: 0 ok, 1 runtime, 2 the user's files, 3 the outside, 4 state."""
        return max((e.conduct.exit_code for e in self.errors.values()), default=0)


@dataclass
class Attempt:
    """One query over its restarts."""

    query: Query
    running: Running
    tries: Tries
    due: float | None = None
    done: bool = False


class Supervisor:
    """Runs the queries of a plan to their end.

    `until`: `stopped` runs for ever, `caught_up` ends when every source is at the position it had
    at the start, `complete` also closes the windows that are open then.
    """

    def __init__(
        self,
        plan: Plan,
        session: SparkSession,
        state: StateDirectory,
        *,
        until: Literal["stopped", "caught_up", "complete"],
        metrics: Metrics,
        log: Log,
        stop: StopRequest,
        on_tick: Callable[[], None] | None = None,
    ) -> None:
        self.plan, self.session, self.state = plan, session, state
        self.until, self.metrics, self.log, self.stop = until, metrics, log, stop
        self.on_tick = on_tick
        self.policy = plan.spec.runtime.restart
        self.collector = Collector(plan, state)
        self.acknowledger = Acknowledger(plan, state, log)
        self.receivers = Receivers(plan, log)
        self.listener = Listener(plan, metrics, self.collector.skipped)
        self.attempts: list[Attempt] = []
        self.failed: dict[str, PenstockError] = {}
        self._ticked = 0.0
        self._clock = SinkClock(plan, log)
        self._told_tables: set[str] = set()
        self._collecting = threading.Lock()
        for node in plan.nodes.values():
            if node.kind != "transform" and not node.static:
                metrics.flow(node.name, node.kind, node.type)

    def run(self) -> Outcome:
        """Blocks until the run has ended. Raises PenstockError where it cannot begin."""
        self.session.streams.addListener(self.listener)
        try:
            self._recover()
            self._look_after_receivers()
            if not self.state.read("closing"):
                self._phase(self.plan.queries, self.until)
            if self.until == "complete" and self._going_well:
                self._close_windows()
            return self._end()
        finally:
            self._halt()
            self.session.streams.removeListener(self.listener)
            self.acknowledger.close()
            self._close_sinks()

    # Events of the batches, called on the queries' threads

    def begin(self, query: Query, number: int) -> None:
        """A batch begins: what came before it is committed."""
        if self.stop.asked.is_set():
            raise Stopped
        self._between_batches(query, number - 1)
        self.collector.clear(query.name, number)

    def wrote(self, query: Query, number: int, sink: str, rows: int, bad: int) -> None:
        """A sink has the batch."""
        self.metrics.flows[sink].add(rows)
        self.log.debug("batch", query=query.name, batch=number, sink=sink, rows=rows, bad=bad)

    # The phases of a run

    def _recover(self) -> None:
        for query in self.plan.queries:
            committed = self.state.committed(query.name)
            self._collect(query.name, committed)
        self.collector.skipped.clear()
        for node in self._sinks:
            patiently(node.sink.recover, self.policy, self.log, self.stop)

    def _phase(self, queries: Iterable[Query], until: Until) -> None:
        builder = Builder(self.plan, self.session, self.state.spool, closing=until == "closed")
        self.attempts = [
            Attempt(query, self._start(builder, query, until), Tries(self.policy, self.log))
            for query in queries
        ]
        while not all(attempt.done for attempt in self.attempts):
            for attempt in self.attempts:
                self._look_after(attempt, builder, until)
            if self.stop.asked.is_set():
                self._halt()
                return
            self._tick()
            time.sleep(PAUSE)
        for attempt in self.attempts:
            self._collect(attempt.query.name, self.state.committed(attempt.query.name))
        self._collect_tables()

    def _close_windows(self) -> None:
        open_ = self.plan.with_windows
        if open_:
            self.state.write("closing", {"since": now()})
            self._phase(open_, "closed")

    def _end(self) -> Outcome:
        if self.failed:
            return Outcome("failed", dict(self.failed))
        if self.stop.asked.is_set():
            ending: Ending = "stopped"
        else:
            ending = "complete" if self.until == "complete" else "caught_up"
        for node in self.plan.of("sink"):
            node.sink.complete()
        if ending == "complete":
            self.state.write("complete", {"at": now(), "windows": bool(self.plan.with_windows)})
        return Outcome(ending, reason=self.stop.reason)

    def _close_sinks(self) -> None:
        for node in self._sinks:
            try:
                node.sink.close()
            except Exception as error:
                self.log.warning("not closed", sink=node.name, error=f"{error}")

    @property
    def _sinks(self) -> list[Node]:
        """Those of the plan, and the one of its dead letters."""
        last = self.plan.dead_letter
        return [*self.plan.of("sink"), *([] if last is None else [last])]

    @property
    def _going_well(self) -> bool:
        return not self.failed and not self.stop.asked.is_set()

    def _look_after_receivers(self) -> None:
        for name, error in self.receivers.look():
            self._gone("source", name, error)
        for name, count in self.receivers.lost().items():
            self.metrics.flows[name].lost = count

    # One query

    def _start(self, builder: Builder, query: Query, until: Until) -> Running:
        running = start(
            builder, query, self.state.checkpoint(query.name), self,
            until=until, trigger=self.plan.trigger(query),
        )  # fmt: skip
        self.listener.sources[query.name] = running.sources
        return running

    def _look_after(self, attempt: Attempt, builder: Builder, until: Until) -> None:
        if attempt.done:
            return
        if attempt.due is not None:
            if time.monotonic() >= attempt.due:
                attempt.due = None
                self.metrics.restarts += 1
                attempt.running = self._start(builder, attempt.query, until)
            return
        if attempt.running.spark.isActive:
            return
        error = attempt.running.runner.error or attempt.running.spark.exception()
        if error is None or isinstance(error, Stopped):
            attempt.done = True
            return
        self._failed(attempt, diagnose(self.plan, attempt.query, error))

    def _failed(self, attempt: Attempt, error: PenstockError) -> None:
        name = attempt.query.name
        attempt.due = attempt.tries.failed(error, self.state.committed(name), query=name)
        if attempt.due is None:
            attempt.done = True
            self._gone("query", name, error)

    def _gone(self, what: str, name: str, error: PenstockError) -> None:
        """A query or the receiver of a source has failed for good."""
        self.failed[name] = error
        if self.policy.on_permanent == "stop_pipeline":
            self.stop.asked.set()
        else:
            self.log.error(f"{what} stopped", **{what: name}, code=error.code, error=error.message)

    def _halt(self) -> None:
        """Stops all: queries after the batch under way, or at once if that is asked."""
        self.stop.asked.set()
        self.receivers.close()
        until = time.monotonic() + FINISH_TIMEOUT
        for attempt in self.attempts:
            running = attempt.running
            while running.spark.isActive and not self._at_rest(running):
                if self.stop.urgent.is_set() or time.monotonic() > until:
                    break
                time.sleep(PAUSE)
            if running.spark.isActive:
                running.spark.stop()
            attempt.done = True
            self.listener.catch_up(running.spark)
            self._collect(running.query.name, self.state.committed(running.query.name))
        self.acknowledger.settle()
        self.attempts = []

    def _at_rest(self, running: Running) -> bool:
        """Whether no batch is being written, and what was written is in the commit log."""
        if running.runner.lock.locked():
            return False
        written = running.runner.written
        committed = self.state.committed(running.query.name)
        return written is None or (committed is not None and committed >= written)

    # What is due from time to time

    def _tick(self) -> None:
        if time.monotonic() - self._ticked < TICK:
            return
        self._ticked = time.monotonic()
        self.stop.look()
        for attempt in self.attempts:
            self._tick_if_idle(attempt)
        self._collect_tables()
        self._look_after_receivers()
        self.acknowledger.settle()
        self.state.write("status.json", self.metrics.snapshot())
        if self.on_tick is not None:
            self.on_tick()

    def _tick_if_idle(self, attempt: Attempt) -> None:
        lock = attempt.running.runner.lock
        if lock.acquire(blocking=False):
            try:
                self._between_batches(attempt.query, self.state.committed(attempt.query.name))
            finally:
                lock.release()

    def _between_batches(self, query: Query, committed: int | None) -> None:
        """With the lock of the query's runner: no batch of it is under way."""
        self._collect(query.name, committed)
        self._clock.look(query)

    def _collect_tables(self) -> None:
        """Those of static tables, which are read again with each phase, are told once."""
        for node in self.plan.of("source"):
            if node.static and node.name not in self._told_tables and self._collect(node.name, 0):
                self._told_tables.add(node.name)

    def _collect(self, query: str, through: int | None) -> bool:
        """Dead letters of committed batches go where they belong. Tells whether there were any."""
        with self._collecting:
            counts = self.collector.collect(query, through)
        self.listener.count_skipped(query)
        for node, count in counts.items():
            nodes = self.plan.nodes
            flow = self.metrics.flow(node, nodes[node].kind, nodes[node].type)
            flow.dead_letters += count
            self.log.warning("dead letters", node=node, count=count)
        bounds = self.plan.spec.runtime.dead_letters
        DeadLetters(self.state.dead_letters).bound(bounds.max_size, bounds.retention)
        return bool(counts)
