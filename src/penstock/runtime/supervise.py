"""Supervision of a run: its phases, receivers, dead letters and the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from penstock.core.errors import OutputClosed, Transient
from penstock.core.log import Log
from penstock.engine.build import Builder
from penstock.engine.derivation import Analysis
from penstock.engine.lookups.lookup_table import OPEN_SOURCES
from penstock.engine.spark_session.cluster import LostExecutors
from penstock.engine.start import Until
from penstock.observe.listener import Listener
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.dead_letters.collection import DeadLetterCollection
from penstock.runtime.failing_sinks import FailingSinks
from penstock.runtime.outcome import Ending, Outcome
from penstock.runtime.periodic_work import PeriodicWork
from penstock.runtime.query_run import QueryRun
from penstock.runtime.query_starts import QueryStarts
from penstock.runtime.receiving.receivers import Receivers
from penstock.runtime.receiving.retained_logs import RetainedLogs
from penstock.runtime.retry import restart_policy
from penstock.runtime.run_failures import RunFailures
from penstock.runtime.run_options import EndOfRun
from penstock.runtime.side_outputs import SideOutputs
from penstock.runtime.sink_timer import SinkTimer
from penstock.runtime.state.batch_log import BatchLog
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.state_stores import StateStores
from penstock.runtime.stop import StopRequest
from penstock.runtime.taps.run_taps import RunTaps

POLL_SECONDS = 0.1
FINISH_TIMEOUT = 60.0


class Supervisor:
    """The supervisor of the queries of a plan, from their start to their end.

    `until`: `stopped` runs until a stop is requested, `caught_up` ends when every source has
    reached its latest offset at the start, `complete` also closes the windows still open.
    """

    def __init__(
        self,
        plan: Plan,
        session: SparkSession,
        state: StateDirectory,
        *,
        until: EndOfRun,
        metrics: Metrics,
        log: Log,
        stop: StopRequest,
        on_tick: Callable[[], None] | None = None,
        analysis: Analysis | None = None,
    ) -> None:
        self.plan, self.session, self.state = plan, session, state
        self.until, self.metrics, self.log, self.stop = until, metrics, log, stop
        self.on_tick = on_tick
        self.analysis = analysis or Analysis()
        self.policy = restart_policy(plan.spec.runtime.restart, endless=until == "stopped")
        self.dead_letters = DeadLetterCollection(plan, self.policy, state, metrics, log, stop)
        self.collector = self.dead_letters.collector
        self.state_stores = StateStores(plan, session, state, metrics, log)
        self.failing_sinks = FailingSinks(plan, state, metrics, log)
        self.receivers = Receivers(plan, self.policy, metrics, log)
        self.retained_logs = RetainedLogs(log)
        self.executors = LostExecutors(session, log)
        self.listener = Listener(plan, metrics, self.collector.read)
        self.side_outputs = SideOutputs(plan, metrics, log)
        self.query_runs: list[QueryRun] = []
        self.events = BatchEvents(
            metrics, log, stop, self.dead_letters, self.listener, self.state_stores,
            SinkTimer(plan, log), self.failing_sinks, self.side_outputs,
            RunTaps(plan, state.root, log),
        )  # fmt: skip
        self.starts = QueryStarts(plan, session, state, self.policy, self.events)
        self.failures = RunFailures(plan, self.policy, self.events)
        self.periodic_work = PeriodicWork(plan, state, self.events, until)
        metrics.resume(state.read("status.json") or {}, [query.name for query in plan.queries])
        for node in plan.nodes.values():
            if node.kind != "transform" and (node.lookup is None or not node.static):
                unit = node.source.lag_unit if node.kind == "source" else "records"
                metrics.flow(node.name, node.kind, node.type, unit)

    def run(self) -> Outcome:
        """Blocks until the end of the run. Raises PenstockError if the run cannot start."""
        self.session.streams.addListener(self.listener)
        observers = self.metrics.batch_reports.observers
        observers.append(log := BatchLog(self.state, self.metrics.run).add)
        try:
            self._recover()
            self._poll_receivers()
            closing = bool(self.state.read("closing"))
            if not closing:
                self._run_streams()
            if self.until == "complete" and self._healthy and (closing or not self._closes_at_once):
                self._close_windows()
            if self.until == "complete" and self._healthy:
                self._run_final_queries()
            return self._end()
        finally:
            try:
                self._stop_all()
            finally:
                self.session.streams.removeListener(self.listener)
                observers.remove(log)
                self.periodic_work.close()
                OPEN_SOURCES.close_below(self.state.checkpoints)
                self._close_sinks()
                self.side_outputs.close()

    def _run_streams(self) -> None:
        """Runs the queries of streams, again while their receivers have not caught up."""
        streams = [query for query in self.plan.queries if not query.whole_input]
        self._await_phases()
        complete = False
        while not complete and self._healthy:
            complete = self._await_backlog()
            if self._healthy:
                self._run_phase(streams, self.until, closes_windows=self._closes_at_once)

    def _await_phases(self) -> None:
        """Waits until the last phases of sources are received.

        The phases before end afterwards, so that no record between them is missing.
        """
        if awaited := self.receivers.awaited:
            self.log.info("waiting for receivers", sources=", ".join(awaited))
        while self._healthy and not self.receivers.phases_have_begun:
            self.listener.await_end(POLL_SECONDS)
            self._tick()

    def _await_backlog(self) -> bool:
        """Waits for the backlog of receivers, if the run ends when it has caught up.

        Returns whether the journals have all of it. A journal that is half full is read before.
        """
        while self.until == "caught_up" and self._healthy and not self.receivers.caught_up:
            if self.receivers.is_half_full:
                return False
            self.listener.await_end(POLL_SECONDS)
            self._tick()
        return True

    def _recover(self) -> None:
        for query in self.plan.queries:
            self.periodic_work.collect_committed(query.name)
        self.collector.read.clear()
        self.collector.untimed.clear()
        self.collector.late.clear()
        for node in self._sinks:
            self.failing_sinks.recover(node, self.policy, self.stop)

    def _run_phase(
        self, queries: Iterable[Query], until: Until, *, closes_windows: bool = False
    ) -> None:
        builder = Builder(
            self.plan, self.session, self.state.spool, sentinel_only=until == "closed",
            closes_windows=closes_windows, analysis=self.analysis,
        )  # fmt: skip
        self.query_runs = [self.starts.run(builder, query, until) for query in queries]
        self.metrics.all_started = True
        while not all(run.done for run in self.query_runs):
            # A poll is a request to Java.
            polls = self.listener.await_end(POLL_SECONDS) or self.periodic_work.is_due()
            for run in self.query_runs:
                if (polls or run.restart_at) and (cause := run.poll()) is not None:
                    self.failures.handle(run, cause)
            if self.stop.requested.is_set():
                self._stop_all()
                self.periodic_work.collect_tables()
                return
            self._tick()
        for run in self.query_runs:
            self.periodic_work.collect_committed(run.query.name)
        self.periodic_work.collect_tables()

    def _close_windows(self) -> None:
        queries = self.plan.with_windows
        if queries:
            self.state.write("closing", {"since": now()})
            self._run_phase(queries, "closed")

    def _run_final_queries(self) -> None:
        """Runs the queries of the whole input that have not committed their batch."""
        queries = [q for q in self.plan.final_queries if self.state.committed(q.name) is None]
        if queries:
            self._run_phase(queries, "complete")

    def _end(self) -> Outcome:
        if failed := self.failures.permanent:
            closed = all(isinstance(error, OutputClosed) for error in failed.values())
            reason = self.stop.reason if closed else None
            return Outcome("stopped" if closed else "failed", dict(failed), reason)
        if self.failures.has_changed_schema:
            return Outcome("changed_schema")
        if self.stop.requested.is_set():
            ending: Ending = "stopped"
        else:
            ending = "complete" if self.until == "complete" else "caught_up"
        self.dead_letters.complete()
        for node in self.plan.of("sink"):
            node.sink.complete()
        if ending == "complete":
            closed = bool(self.plan.with_windows or self.plan.final_queries)
            self.state.write("complete", {"at": now(), "windows": closed})
        return Outcome(ending, reason=self.stop.reason)

    def _close_sinks(self) -> None:
        for node in self._sinks:
            try:
                node.sink.close()
            except Exception as error:
                self.log.warning("close failed", sink=node.name, error=f"{error}")

    @property
    def _sinks(self) -> list[Node]:
        """The sinks of the plan and its dead-letter sink."""
        dead_letter = self.plan.dead_letter
        return [*self.plan.of("sink"), *([] if dead_letter is None else [dead_letter])]

    @property
    def _closes_at_once(self) -> bool:
        """Whether the query of streams closes its windows, without a start of its own."""
        return self.until == "complete" and self.plan.closes_windows_at_once

    @property
    def _healthy(self) -> bool:
        return not self.failures.permanent and not self.stop.requested.is_set()

    def _tick(self) -> None:
        if self.periodic_work.is_due():
            self._poll_receivers()
            self.periodic_work.tick(self.query_runs)
            self._check_executors()
            if self.on_tick is not None:
                self.on_tick()

    def _check_executors(self) -> None:
        """Ends the run if its batches wait for executors and there are none."""
        waits = any(run.active and not run.is_idle() for run in self.query_runs)
        try:
            self.executors.check(waits=waits)
        except Transient:
            self.stop.immediate.set()
            raise

    def _poll_receivers(self) -> None:
        for name, error in self.receivers.poll():
            self.failures.record("source", name, error)
        for name, count in self.receivers.lost().items():
            self.metrics.flows[name].lost = count
        for name, retained in self.receivers.retained().items():
            self.metrics.flows[name].retained = retained
            self.retained_logs.observe(name, retained)

    def _stop_all(self) -> None:
        """Stops receivers and queries: after the batch under way, or at once if requested.

        A batch whose sink fails is interrupted.
        """
        self.stop.requested.set()
        self.receivers.close()
        deadline = time.monotonic() + FINISH_TIMEOUT
        for run in self.query_runs:
            started = run.started
            while started.spark.isActive and not run.is_idle():
                if self.stop.immediate.is_set() or time.monotonic() > deadline:
                    break
                if self.failing_sinks.find(run.query.name):
                    break
                time.sleep(POLL_SECONDS)
            if started.spark.isActive:
                started.spark.stop()
            run.end()
            self.listener.catch_up(started.spark)
        self.periodic_work.acknowledge()
        stopped, self.query_runs = self.query_runs, []
        for run in stopped:
            self.periodic_work.collect_committed(run.query.name)
