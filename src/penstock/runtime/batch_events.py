"""Batch events of a run: its metrics, dead letters and timers. Called by the threads of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.error_codec import decode
from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.core.text import shorten
from penstock.engine.batch_observer import Written
from penstock.observe.listener import Listener
from penstock.observe.metrics import Metrics, StateSize
from penstock.plan.model import Query
from penstock.runtime.dead_letters.collection import DeadLetterCollection
from penstock.runtime.failing_sinks import FailingSinks
from penstock.runtime.side_outputs import SideOutputs
from penstock.runtime.sink_timer import SinkTimer
from penstock.runtime.state_stores import StateStores
from penstock.runtime.stop import Stopped, StopRequest
from penstock.runtime.taps.run_taps import RunTaps


@dataclass
class BatchEvents:
    """The observer of the batches of a run (see `engine.batch_observer.BatchObserver`)."""

    metrics: Metrics
    log: Log
    stop: StopRequest
    dead_letters: DeadLetterCollection
    listener: Listener
    state_stores: StateStores
    sink_timer: SinkTimer
    failing_sinks: FailingSinks
    side_outputs: SideOutputs
    taps: RunTaps

    def on_begin(self, query: Query, number: int) -> None:
        """Handles the start of a batch. Earlier batches are committed."""
        if self.stop.requested.is_set():
            raise Stopped
        self.dead_letters.collect(query.name, number - 1)
        self.listener.count_rows(query.name)
        self.state_stores.check(query)
        self.sink_timer.tick(query)
        self.failing_sinks.begin(query.name)
        self.metrics.queries[query.name].begin_batch(number)
        self.metrics.batch_reports.begin(query.name, number)

    def on_attempt(self, query: Query, number: int, done: frozenset[str]) -> None:
        """Handles an attempt to write a batch. Earlier attempts have written the sinks `done`."""
        self.dead_letters.collector.clear(query.name, number, done)

    def on_search(self, query: Query, number: int) -> None:
        """Handles a step of the search for failing rows. A restart repeats the batch."""
        if self.stop.requested.is_set():
            raise Stopped

    def on_failure(self, query: Query, sink: str, error: PenstockError) -> None:
        """Handles a failure of a sink on the driver that is tried again."""
        self.failing_sinks.report(query.name, sink, error)

    def on_written(self, query: Query, number: int, sink: str, written: Written) -> None:
        """Handles the commit of a batch by a sink."""
        if len(query.sinks) > 1:
            self.dead_letters.collector.keep(query.name, number, sink)
        flow, rows, bad = self.metrics.flows[sink], written.rows, written.bad
        flow.add(rows)
        if written.bytes is not None:
            flow.bytes = (flow.bytes or 0) + written.bytes
        self.metrics.batch_reports.add(query.name, number, sink, rows, bad)
        self.log.debug("batch", query=query.name, batch=number, sink=sink, rows=rows, bad=bad)

    def on_truncated(self, query: Query, number: int) -> None:
        """Handles a batch before which all sinks have removed the rows of their targets."""
        self.log.warning("targets emptied", query=query.name, batch=number, sinks=[*query.sinks])

    def on_state(self, query: Query, rows: int, size: int) -> None:
        """Handles the state of updating transforms after a batch."""
        self.metrics.updating[query.name] = StateSize(rows, size)

    def on_unknown_places(self, query: Query, number: int, error: Exception) -> None:
        """Handles a failure of the search for the places of failing rows in their sources."""
        cause = error if isinstance(error, PenstockError) else decode(str(error))
        reason = cause.message if cause is not None else shorten(str(error))
        self.log.warning(
            "dead letters without position", query=query.name, batch=number, reason=reason
        )

    def on_rows(self, query: Query, number: int, node: str, rows: pa.Table, count: int) -> None:
        """Handles the rows of a node for side outputs."""
        self.side_outputs.pass_rows(query, number, node, rows, count)

    def on_unobserved(self, query: Query, number: int, node: str, error: Exception) -> None:
        """Handles a failure to copy the rows of a node for side outputs."""
        self.side_outputs.miss(node, error)

    def tapped(self, query: Query) -> Mapping[str, int]:
        """Returns the nodes whose rows taps copy from the next batch, and the rows of each."""
        return self.taps.wanted(query)

    def on_tapped(self, query: Query, number: int, node: str, rows: pa.Table) -> None:
        """Handles the copied rows of a node for taps."""
        self.taps.pass_rows(query, number, node, rows)

    def on_untapped(self, query: Query, number: int, node: str, error: Exception) -> None:
        """Handles a failure to copy the rows of a node for taps."""
        self.taps.miss(query, number, node, error)

    def on_end(self, query: Query, number: int) -> None:
        """Handles the commit of a batch by all sinks."""
        self.metrics.queries[query.name].end_batch()
