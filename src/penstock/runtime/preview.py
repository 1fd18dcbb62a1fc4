"""Preview of a plan: queries without sinks and restarts, in a temporary state directory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import PenstockError, PlanError
from penstock.core.files.temporary import temporary_directory
from penstock.engine.batch_observer import Written
from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import sink_schema
from penstock.engine.catalyst.variants import head_of
from penstock.engine.checks.column_types import column_types
from penstock.engine.start import StartedQuery, Until, start
from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER
from penstock.plan.model import Plan, Query
from penstock.plan.rewrite import isolate_state
from penstock.runtime.capture import capture_nodes
from penstock.runtime.capture_sink import Capture
from penstock.runtime.cluster import served_to_tasks
from penstock.runtime.dead_letters.store import Collector, DeadLetters
from penstock.runtime.diagnose import diagnose
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import Stopped
from penstock.sdk import Capability

POLL_SECONDS = 0.05
"""The maximum time between two looks at the queries."""
IDLE_SECONDS = 2.0
"""An unbounded input counts as caught up after as many seconds without data."""


@dataclass(frozen=True)
class Preview:
    """The rows of nodes of a plan, by node, until the end or an error."""

    tables: dict[str, pa.Table]
    dead_letters: pa.Table
    error: PenstockError | None = None


@dataclass
class PreviewRun:
    """A run of a plan with captures as sinks, in a directory of its own.

    Ends with the first error, when `enough` returns True, or before the batch number `stop_before`
    of each query. Another run in the same directory resumes.
    """

    plan: Plan
    session: SparkSession
    directory: Path
    enough: Callable[[], bool] = lambda: False
    on_poll: Callable[[], None] = lambda: None
    """Called regularly during the run, and after its end."""
    deadline: float | None = None
    stop_before: int | None = None
    error: PenstockError | None = None
    _queries: list[StartedQuery] = field(default_factory=list)
    _running: list[StartedQuery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = StateDirectory(self.directory)
        self._collector = Collector(self.plan, self.state)

    def run(self, builder: Builder, until: Until, queries: Iterable[Query] | None = None) -> bool:
        """Runs queries to their end. Returns whether all ended by themselves, without an error."""
        self._queries = []
        try:
            for query in self.plan.queries if queries is None else queries:
                self._queries.append(self._start(builder, query, until))
            self._running = [*self._queries]
            return self._wait(until)
        except PenstockError as error:
            self.error = error
            return False
        finally:
            self._stop()
            self.on_poll()

    def dead_letters(self) -> pa.Table:
        """Returns the dead letters of the written batches, in order of arrival."""
        return DeadLetters(self.state.dead_letters).read()

    def on_begin(self, query: Query, number: int) -> None:
        """Handles the start of a batch or of its repetition."""
        if self._ended() or number == self.stop_before:
            raise Stopped

    def on_attempt(self, query: Query, number: int, done: frozenset[str]) -> None:
        """Handles an attempt to capture a batch."""
        self._collector.clear(query.name, number, done)

    def on_failure(self, query: Query, sink: str, error: PenstockError) -> None:
        pass

    def on_search(self, query: Query, number: int) -> None:
        """Handles a step of the search for failing rows."""
        if self._ended():
            raise Stopped

    def on_written(self, query: Query, number: int, sink: str, written: Written) -> None:
        """Handles a captured batch."""

    def on_unknown_places(self, query: Query, number: int, error: Exception) -> None:
        pass

    def on_truncated(self, query: Query, number: int) -> None:
        pass

    def on_state(self, query: Query, rows: int, size: int) -> None:
        pass

    def on_rows(self, query: Query, number: int, node: str, rows: pa.Table, count: int) -> None:
        pass

    def on_unobserved(self, query: Query, number: int, node: str, error: Exception) -> None:
        pass

    def tapped(self, query: Query) -> Mapping[str, int]:
        return {}

    def on_tapped(self, query: Query, number: int, node: str, rows: pa.Table) -> None:
        pass

    def on_untapped(self, query: Query, number: int, node: str, error: Exception) -> None:
        pass

    def on_end(self, query: Query, number: int) -> None:
        """Handles a batch captured for all nodes."""

    def _ended(self) -> bool:
        late = self.deadline is not None and time.monotonic() > self.deadline
        return self.error is not None or late or self.enough()

    def _start(self, builder: Builder, query: Query, until: Until) -> StartedQuery:
        checkpoint = self.state.checkpoint(query.name)
        try:
            return start(builder, query, checkpoint, self, until=until, trigger=0.0)
        except AnalysisException:
            column_types(builder)
            raise

    def _wait(self, until: Until) -> bool:
        idle_since: float | None = None
        while self._alive():
            self.on_poll()
            if self._ended():
                return False
            busy = until != "stopped" or any(_busy(running) for running in self._queries)
            idle_since = None if busy else idle_since or time.monotonic()
            if idle_since and time.monotonic() - idle_since > IDLE_SECONDS:
                return True
            self._await_end()
        return self.error is None

    def _await_end(self) -> None:
        """Waits for the end of a running query, at most `POLL_SECONDS`."""
        with suppress(StreamingQueryException):
            self._running[0].spark.awaitTermination(POLL_SECONDS)  # type: ignore[arg-type]

    def _alive(self) -> bool:
        """Returns whether a query is running. Stores the first error of an ended query."""
        running, self._running = self._running, []
        for each in running:
            if each.spark.isActive:
                self._running.append(each)
                continue
            error = each.runner.error or each.spark.exception()
            if error is not None and not isinstance(error, Stopped) and self.error is None:
                self.error = diagnose(self.plan, each.query, error)
        return bool(self._running)

    def _stop(self) -> None:
        for running in self._queries:
            if running.spark.isActive:
                running.spark.stop()
            self._collector.collect(running.query.name, running.runner.written)
        for node in self.plan.of("source"):
            if node.static:
                self._collector.collect(node.name, sys.maxsize if node.lookup else 0)


OnRows = Callable[[str, pa.Table], None]
"""A function that receives the next rows of a node."""


def preview(
    plan: Plan,
    names: Sequence[str],
    session: SparkSession,
    *,
    rows: int,
    timeout: float,
    on_rows: OnRows | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Preview:
    """Returns at most `rows` rows of each node, and the dead letters of the nodes upstream.

    `on_rows` receives the rows of streams as they arrive, in the calling thread.

    Reads the sources from their beginnings; writes and acknowledges nothing. Ends when every node
    has its rows, when the input is caught up (open windows of a bounded input are closed then),
    after `timeout` seconds, or when `cancelled` returns True. The schemas of the plan must be
    resolved.
    """
    with temporary_directory() as directory, served_to_tasks(session, directory):
        tap, captures = capture_nodes(isolate_state(plan, directory), names, max_rows=rows)
        run = PreviewRun(
            tap, session, directory,
            lambda: cancelled() or all(capture.full for capture in captures.values()),
        )  # fmt: skip
        if on_rows is not None:
            run.on_poll = _Arrivals(captures, on_rows)
        builder = Builder(tap, session, run.state.spool, checks_rows=True)
        try:
            types = column_types(builder)
            tables = {name: _head(builder, name, rows) for name in names if name not in captures}
            run.deadline = time.monotonic() + timeout
            if run.run(builder, "caught_up" if plan.bounded else "stopped") and plan.bounded:
                run.run(replace(builder, sentinel_only=True), "closed", tap.with_windows)
        except PenstockError as error:
            return Preview({}, DEAD_LETTER.empty_table(), error)
        for name, capture in captures.items():
            columns = sink_schema(types[tap.nodes[capture.context.node].inputs[0]])
            tables[name] = columns.empty_table() if capture.table is None else capture.table
        return Preview(tables, run.dead_letters(), run.error)


class _Arrivals:
    """Passes the rows of captures on, once each."""

    def __init__(self, captures: Mapping[str, Capture], on_rows: OnRows) -> None:
        self._captures, self._on_rows = captures, on_rows
        self._passed = dict.fromkeys(captures, 0)

    def __call__(self) -> None:
        for name, capture in self._captures.items():
            if capture.count > self._passed[name] and capture.table is not None:
                rows = capture.table.slice(self._passed[name])
                self._passed[name] += rows.num_rows
                self._on_rows(name, rows)


def _busy(query: StartedQuery) -> bool:
    status = query.spark.status
    return bool(status["isTriggerActive"] or status["isDataAvailable"])


def _head(builder: Builder, name: str, rows: int) -> pa.Table:
    """Returns the first rows of a static node."""
    frames: dict[str, DataFrame] = {}
    query = Query("static", name, (), (), ())
    for node in builder.plan.nodes.values():
        if node.can(Capability.LOOKUP_BY_KEY):
            continue
        if node.static:
            frames[node.name] = builder.read_static(node.name)
        elif node.kind == "transform" and all(input_ in frames for input_ in node.inputs):
            frames[node.name] = builder.derive(node, frames, query, builder.session)
    if name not in frames:
        raise PlanError(
            f'"{name}" reads a lookup table by key, which has no list of rows',
            code="lookup-join",
            hint="Join a stream with it.",
        )
    return head_of(frames[name], rows)
