"""Execution of a query or receiver: its state, its last error and its batch under way."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import PenstockError
from penstock.observe.snapshot import ExecutionSnapshot

State = Literal["running", "retrying", "failed", "ended"]
SLOW_SECONDS = 5.0
"""The age at which a batch under way is shown."""


@dataclass
class Execution:
    """Execution of a query or receiver during a run.

    `state` is `retrying` from a transient failure to the next batch written, or for a receiver to
    its next start. Times are seconds since the epoch. `error` is the last error of that state, and
    `sink` the sink that failed with this error; None if something else failed. `failures` counts
    the restarts. `batch` is the number of the batch under way. `subscribed` is whether records that
    arrive now are read: a receiver receives, or a query knows its first offsets.
    """

    state: State = "running"
    since: float = 0.0
    error: str | None = None
    code: str | None = None
    sink: str | None = None
    failures: int = 0
    next_attempt: float | None = None
    batch: int | None = None
    batch_since: float | None = None
    subscribed: bool = False

    def __post_init__(self) -> None:
        self.since = self.since or time.time()

    def begin_batch(self, number: int) -> None:
        """Records the start of an attempt to write a batch."""
        self.subscribed = True
        if number != self.batch:
            self.batch, self.batch_since = number, time.time()

    def end_batch(self) -> None:
        """Records that all sinks have written the batch."""
        self.batch = self.batch_since = None
        self.run()

    def run(self) -> None:
        """Records that the query or receiver works."""
        self.subscribed = True
        self._enter("running")
        self.error = self.code = self.sink = self.next_attempt = None
        self.failures = 0

    def try_again(self, error: PenstockError, sink: str) -> None:
        """Records a transient failure of a sink that is tried again without a restart."""
        self._enter("retrying")
        self._set_error(error, sink)

    def retry(self, error: PenstockError, pause: float) -> None:
        """Records a transient failure and the seconds to the next attempt."""
        self._enter("retrying")
        self.failures += 1
        self._set_error(error)
        self.next_attempt = time.time() + pause

    def fail(self, error: PenstockError) -> None:
        """Records a permanent failure."""
        self._enter("failed")
        self._set_error(error)
        self.batch = self.batch_since = None

    def end(self) -> None:
        """Records the end of a query that has not failed."""
        self.subscribed = True
        if self.state != "failed":
            self._enter("ended")
        self.batch = self.batch_since = None

    @property
    def stalled(self) -> bool:
        """Whether the query is between two attempts, or a batch has been under way for long."""
        since = self.batch_since
        is_slow = since is not None and time.time() - since > SLOW_SECONDS
        return self.state == "retrying" or is_slow

    def snapshot(self) -> ExecutionSnapshot:
        """Returns the execution as JSON."""
        return {
            "state": self.state,
            "since": self.since,
            "error": self.error,
            "code": self.code,
            "sink": self.sink,
            "failures": self.failures,
            "next_attempt": self.next_attempt,
            "batch": self.batch,
            "batch_since": self.batch_since,
        }

    def _set_error(self, error: PenstockError, sink: str | None = None) -> None:
        """Sets the last error, of the sink that has reported the same error before."""
        if sink is None and error.message == self.error:
            sink = self.sink
        self.error, self.code, self.sink, self.next_attempt = error.message, error.code, sink, None

    def _enter(self, state: State) -> None:
        if state != self.state:
            self.state, self.since = state, time.time()
