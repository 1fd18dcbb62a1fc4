"""Queries run to see what they give: no sinks, no restarts, and a state that is thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import PenstockError
from penstock.engine.build import Builder
from penstock.engine.columns import to_arrow
from penstock.engine.spool import DEAD_LETTER
from penstock.engine.start import Running, Until, start
from penstock.plan.model import Plan, Query
from penstock.plan.tap import apart, tapped
from penstock.runtime.dead_letters import Collector, DeadLetters
from penstock.runtime.diagnose import diagnose
from penstock.runtime.state import StateDirectory
from penstock.runtime.stop import Stopped

PAUSE = 0.01
QUIET = 2.0
"""An input without end is caught up when nothing has come of it for so many seconds."""


@dataclass(frozen=True)
class Observed:
    """What flowed at some nodes of a plan, until it ended, was stopped or failed."""

    tables: dict[str, pa.Table]
    dead_letters: pa.Table
    error: PenstockError | None = None


@dataclass
class Trial:
    """The queries of a plan that has only captures for sinks, in a directory of their own.

    They end with the first error, or when `enough` says so, and each before its batch number
    `stop_before`; another trial in the same directory then goes on.
    """

    plan: Plan
    session: SparkSession
    directory: Path
    enough: Callable[[], bool] = lambda: False
    deadline: float | None = None
    stop_before: int | None = None
    error: PenstockError | None = None
    _running: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = StateDirectory(self.directory)
        self._collector = Collector(self.plan, self.state)

    def run(self, builder: Builder, until: Until, queries: Iterable[Query] | None = None) -> bool:
        """Runs queries until they end. Returns whether they ended by themselves and well."""
        self._running = []
        try:
            for query in self.plan.queries if queries is None else queries:
                self._running.append(self._start(builder, query, until))
            return self._wait(until)
        except PenstockError as error:
            self.error = error
            return False
        finally:
            self._stop()

    def dead_letters(self) -> pa.Table:
        """The dead letters of the batches that are done, in the order in which they came."""
        return DeadLetters(self.state.dead_letters).read()

    def begin(self, query: Query, number: int) -> None:
        """A batch begins, perhaps again."""
        if self._over() or number == self.stop_before:
            raise Stopped
        self._collector.clear(query.name, number)

    def wrote(self, query: Query, number: int, sink: str, rows: int, bad: int) -> None:
        """A capture has the batch."""

    def _over(self) -> bool:
        late = self.deadline is not None and time.monotonic() > self.deadline
        return self.error is not None or late or self.enough()

    def _start(self, builder: Builder, query: Query, until: Until) -> Running:
        checkpoint = self.state.checkpoint(query.name)
        try:
            return start(builder, query, checkpoint, self, until=until, trigger=0.0)
        except AnalysisException:
            builder.types()
            raise

    def _wait(self, until: Until) -> bool:
        quiet_since: float | None = None
        while self._alive():
            if self._over():
                return False
            busy = until != "stopped" or any(_busy(running) for running in self._running)
            quiet_since = None if busy else quiet_since or time.monotonic()
            if quiet_since and time.monotonic() - quiet_since > QUIET:
                return True
            time.sleep(PAUSE)
        return self.error is None

    def _alive(self) -> bool:
        """Whether a query is still running; the first error of those that are not is kept."""
        ended = [running for running in self._running if not running.spark.isActive]
        for running in ended:
            error = running.runner.error or running.spark.exception()
            if error is not None and not isinstance(error, Stopped) and self.error is None:
                self.error = diagnose(self.plan, running.query, error)
        return len(ended) < len(self._running)

    def _stop(self) -> None:
        for running in self._running:
            if running.spark.isActive:
                running.spark.stop()
            self._collector.collect(running.query.name, running.runner.written)
        for node in self.plan.of("source"):
            if node.static:
                self._collector.collect(node.name, 0)


def observe(
    plan: Plan, names: Sequence[str], session: SparkSession, *, rows: int, timeout: float
) -> Observed:
    """What flows at nodes: at most `rows` rows of each, and the dead letters on the way.

    Reads the sources as a first run would, from their beginnings, writes and acknowledges
    nothing. Ends when every node has its rows, when the input is caught up (windows of an input
    with an end are closed then) or when the queries have had their time. The plan's columns are
    settled.
    """
    with TemporaryDirectory(prefix="penstock-") as temporary:
        directory = Path(temporary)
        tap, captures = tapped(apart(plan, directory), names, most=rows)
        trial = Trial(tap, session, directory, lambda: all(each.full for each in captures.values()))
        builder = Builder(tap, session, trial.state.spool)
        try:
            types = builder.types()
            tables = {name: _head(builder, name, rows) for name in names if name not in captures}
            trial.deadline = time.monotonic() + timeout
            if trial.run(builder, "caught_up" if plan.bounded else "stopped") and plan.bounded:
                trial.run(replace(builder, closing=True), "closed", tap.with_windows)
        except PenstockError as error:
            return Observed({}, DEAD_LETTER.empty_table(), error)
        for name, capture in captures.items():
            columns = to_arrow(types[tap.nodes[capture.context.node].inputs[0]])
            tables[name] = columns.empty_table() if capture.table is None else capture.table
        return Observed(tables, trial.dead_letters(), trial.error)


def _busy(running: Running) -> bool:
    status = running.spark.status
    return bool(status["isTriggerActive"] or status["isDataAvailable"])


def _head(builder: Builder, name: str, rows: int) -> pa.Table:
    """The first rows of a node that is no stream."""
    frames: dict[str, DataFrame] = {}
    query = Query("static", name, (), (), ())
    for node in builder.plan.nodes.values():
        if node.static:
            frames[node.name] = builder.static(node.name)
        elif node.kind == "transform" and all(each in frames for each in node.inputs):
            frames[node.name] = builder.derived(node, frames, query, builder.session)
    return frames[name].limit(rows).toArrow()
