"""Sinks that fail in the batches under way, as status and views show them."""

from __future__ import annotations

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.engine.sinks.sink_failures import clear_failures, read_failure
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.runtime.retry import retry
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import StopRequest
from penstock.spec.runtime_models import Restart


class FailingSinks:
    """The failures of sinks before a query fails: in the attempts of a task or of a call.

    Called by the run and by the threads of its queries.
    """

    def __init__(self, plan: Plan, state: StateDirectory, metrics: Metrics, log: Log) -> None:
        self._plan, self._state, self._metrics, self._log = plan, state, metrics, log
        self._found: set[str] = set()
        """The queries whose failure was found in the reports of tasks."""
        self._logged: dict[str, float] = {}
        """The start of the last logged failure of a query."""

    def begin(self, query: str) -> None:
        """Discards the reports of the attempt before, at the start of an attempt at a batch."""
        clear_failures(self._state.spool / query)

    def poll(self, query: str) -> None:
        """Reads the reports of tasks, and logs a failure that has not ended the attempt."""
        self.find(query)
        execution = self._metrics.queries[query]
        is_new = self._logged.get(query) != execution.since
        if execution.state == "retrying" and not execution.failures and is_new:
            self._logged[query] = execution.since
            self._log.warning(
                "sink fails", query=query, sink=execution.sink, code=execution.code,
                error=execution.error,
            )  # fmt: skip

    def find(self, query: str) -> bool:
        """Reads the reports of tasks. Returns whether a task reports a failure.

        A query without reports and restarts is running again.
        """
        execution = self._metrics.queries[query]
        if execution.batch is None:
            return False
        failure = read_failure(self._state.spool / query)
        if failure is not None:
            self._found.add(query)
            self.report(query, failure.sink, failure.error)
        elif query in self._found:
            self._found.discard(query)
            if not execution.failures:
                execution.run()
        return failure is not None

    def report(self, query: str, sink: str, error: PenstockError) -> None:
        """Shows a failure of a sink that is tried again."""
        self._metrics.queries[query].try_again(error, sink)

    def recover(self, sink: Node, policy: Restart, stop: StopRequest) -> None:
        """Cleans up a sink before the first batch, and shows the failures that are retried."""
        queries = [query.name for query in self._plan.queries if sink.name in query.sinks]

        def show(error: PenstockError, pause: float) -> None:
            for query in queries:
                execution = self._metrics.queries.setdefault(query, Execution())
                execution.try_again(error, sink.name)
                execution.retry(error, pause)
            self._state.write("status.json", self._metrics.snapshot())

        retry(sink.sink.recover, policy, self._log, stop, show)
        for query in self._metrics.queries.keys() & queries:
            self._metrics.queries[query].run()
