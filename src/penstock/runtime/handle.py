"""Handle of a run: stop, wait, events, metrics and preview."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.runtime.event_log import Event, EventLog
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import StopRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.outcome import Outcome
    from penstock.runtime.preview import Preview


class RunHandle:
    """A run of a pipeline, in progress or ended.

    All methods may be called from any thread. `id` identifies the run in the history.
    """

    def __init__(self, plan: Plan, log: Log, id: str | None = None) -> None:
        self.id = id or uuid4().hex[:12]
        self.plan = plan
        self.log = EventLog(log)
        self.stop_request = StopRequest(StateDirectory(plan.state))
        labels = {name: node.spec.labels for name, node in plan.nodes.items()}
        self.metrics = Metrics(self.id, labels)
        self.session: SparkSession | None = None
        self._ended = threading.Event()
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def stop(self, *, immediately: bool = False, reason: str = "stop requested") -> None:
        """Requests a stop after the batch under way, or at once."""
        self.stop_request.request(reason)
        if immediately:
            self.stop_request.immediate.set()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Waits for the end and returns the outcome; None if `timeout` seconds pass before.

        Raises PenstockError if the run could not start.
        """
        if not self._ended.wait(timeout):
            return None
        if self._error is not None:
            raise self._error
        return self._outcome

    def events(self) -> Iterator[Event]:
        """Yields the last events, then each new event until the end of the run."""
        return self.log.follow()

    def preview(self, nodes: Sequence[str], *, rows: int = 10, timeout: float = 30) -> Preview:
        """Returns rows of nodes, read from the beginning of the sources.

        The run and its sinks are not affected. Raises PenstockError for an unknown node or while
        the run has no session.
        """
        from penstock.runtime import preview

        if self.session is None or not self.running:
            raise PenstockError("the run has no Spark session", code="not-running")
        session = self.session.newSession()
        return preview.preview(self.plan, nodes, session, rows=rows, timeout=timeout)

    def end(self, outcome: Outcome | None, error: BaseException | None = None) -> None:
        """Records the end of the run: `wait` returns the outcome, or raises the error."""
        self._outcome, self._error = outcome, error
        self.session = None
        self.log.close()
        self._ended.set()
