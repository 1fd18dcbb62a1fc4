"""One query of a run, over its restarts."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.engine.failures.checked_queries import ChecksRequired
from penstock.engine.spark_session.spark_failure import stopped_error
from penstock.engine.start import StartedQuery
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.plan.model import Query
from penstock.runtime.retry import RetryState
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state_stores import RestartRequired
from penstock.runtime.stop import Stopped
from penstock.spec.runtime_models import Restart


class QueryRun:
    """A query over its restarts.

    `start` starts the query of Spark. `restart_at` is the monotonic time of a pending restart.
    """

    def __init__(
        self, query: Query, start: Callable[[], StartedQuery], session: SparkSession,
        policy: Restart, state: StateDirectory, metrics: Metrics, log: Log,
    ) -> None:  # fmt: skip
        self.query = query
        self.restart_at: float | None = None
        self.done = False
        self.execution = metrics.queries[query.name] = Execution(subscribed=metrics.all_started)
        self._retries = RetryState(policy, log, execution=self.execution)
        self._start, self._session = start, session
        self._state, self._metrics, self._log = state, metrics, log
        self.started = start()

    @property
    def active(self) -> bool:
        """Whether the query is neither at its end nor before a restart."""
        return self.restart_at is None and not self.done

    def poll(self) -> BaseException | None:
        """Starts the query again if it is due. Returns the error that has ended the query.

        A query that ended without an error is `done`.
        """
        if self.done or self.started.spark.isActive:
            return None
        if (stopped := stopped_error(self._session)) is not None:
            return stopped
        if self.restart_at is not None:
            self._restart_when_due(self.restart_at)
            return None
        error = self.started.runner.error or self.started.spark.exception()
        if isinstance(error, ChecksRequired | RestartRequired):
            if isinstance(error, ChecksRequired):
                self._log.info("SQL fails on rows: restarts with checks", query=self.query.name)
            self.started = self._start()
            return None
        if error is None or isinstance(error, Stopped):
            self.end()
            return None
        return error

    def _restart_when_due(self, at: float) -> None:
        if time.monotonic() >= at:
            self.restart_at = None
            self._metrics.restarts += 1
            self.started = self._start()

    def restart_after(self, error: PenstockError) -> bool:
        """Schedules a restart after a failure. Without a further attempt the query is `done`.

        Returns whether a restart is pending.
        """
        name = self.query.name
        self.restart_at = self._retries.next_attempt(error, self._state.committed(name), query=name)
        self.done = self.restart_at is None
        return not self.done

    def end(self) -> None:
        """Records the end of the query."""
        self.done = True
        self.execution.end()

    def is_idle(self) -> bool:
        """Returns whether no batch is running and the last written batch is in the commit log."""
        if self.started.runner.lock.locked():
            return False
        written = self.started.runner.written
        committed = self._state.committed(self.query.name)
        return written is None or (committed is not None and committed >= written)

    def detect_waiting(self) -> None:
        """Records that a query without rows waits for new ones.

        Ends the state `retrying` of a restarted query that has no batch to write.
        """
        execution = self.execution
        is_expected = not execution.subscribed or execution.state == "retrying"
        if not is_expected or not self.active:
            return
        if self.started.spark.status["message"].startswith("Waiting for"):
            execution.subscribed = True
            if execution.state == "retrying":
                execution.run()
