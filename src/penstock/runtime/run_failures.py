"""Failures of a run: errors of its queries and receivers, and the ends that follow."""

from __future__ import annotations

from penstock.core.errors import OutputClosed, PenstockError
from penstock.engine.sources.source_readers import CHANGED_SCHEMA
from penstock.plan.model import Plan
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.diagnose import diagnose
from penstock.runtime.query_run import QueryRun
from penstock.spec.runtime_models import Restart


class RunFailures:
    """The failures of the queries and receivers of a run.

    `permanent` has the errors without a further attempt, by query or receiver. A changed schema of
    a source ends the run without a failure.
    """

    def __init__(self, plan: Plan, policy: Restart, events: BatchEvents) -> None:
        self._plan, self._policy, self._events = plan, policy, events
        self.permanent: dict[str, PenstockError] = {}
        self.has_changed_schema = False

    def handle(self, run: QueryRun, cause: BaseException) -> None:
        """Restarts a query that an error has ended, or records its permanent failure."""
        error, name = diagnose(self._plan, run.query, cause), run.query.name
        if error.code == CHANGED_SCHEMA:
            self.has_changed_schema = True
            run.end()
            self._events.stop.requested.set()
            return
        self._events.failing_sinks.find(name)
        self._report_batch(run, error)
        if not run.restart_after(error):
            self.record("query", name, error)

    def _report_batch(self, run: QueryRun, error: PenstockError) -> None:
        """Reports the batch under way, which has failed with an error."""
        number, began = run.execution.batch, run.execution.batch_since
        if number is not None and began is not None:
            reports = self._events.metrics.batch_reports
            reports.fail(run.query.name, number, began, error.code, error.message)

    def record(self, kind: str, name: str, error: PenstockError) -> None:
        """Records the permanent failure of a query or of a receiver."""
        self.permanent[name] = error
        if isinstance(error, OutputClosed):
            self._events.stop.request(error.message)
        elif self._policy.on_permanent == "stop_pipeline":
            self._events.stop.requested.set()
        else:
            self._events.log.error(
                f"{kind} stopped", **{kind: name}, code=error.code, error=error.message
            )
