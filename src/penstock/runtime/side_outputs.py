"""Side outputs of a run: each has a thread and a queue, and its failures stay its own."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError
from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.core.log import Log
from penstock.core.text import shorten
from penstock.observe.metrics import Metrics, Observed
from penstock.plan.model import Observer, Plan, Query
from penstock.sdk import ObservedRows

END_SECONDS = 5.0
"""The seconds that the remaining batches of all side outputs may take at the end of a run."""


class SideOutputs:
    """The side outputs of a plan, from the start to the end of a run."""

    def __init__(self, plan: Plan, metrics: Metrics, log: Log) -> None:
        self._workers = [_Worker(observer, metrics, log) for observer in plan.observers]

    def pass_rows(self, query: Query, number: int, node: str, rows: pa.Table, count: int) -> None:
        """Passes rows of a batch to the side outputs of a node, without waiting for them."""
        for worker in self._of(node):
            copied = rows.slice(0, worker.observer.max_rows)
            worker.put(ObservedRows(node, query.name, number, copied, count))

    def miss(self, node: str, error: Exception) -> None:
        """Counts a batch whose rows could not be copied."""
        reason = error.message if isinstance(error, PenstockError) else exception_text(error)
        for worker in self._of(node):
            worker.miss(f"the rows could not be copied: {shorten(reason)}")

    def pass_progress(self, metrics: Mapping[str, Any]) -> None:
        """Passes the metrics of the run to all side outputs."""
        for worker in self._workers:
            worker.progress = metrics

    def close(self) -> None:
        """Ends the side outputs, after their remaining batches or a timeout."""
        deadline = time.monotonic() + END_SECONDS
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.await_end(deadline)

    def _of(self, node: str) -> list[_Worker]:
        return [worker for worker in self._workers if node in worker.observer.inputs]


class _Worker:
    """The thread of one side output."""

    def __init__(self, observer: Observer, metrics: Metrics, log: Log) -> None:
        self.observer, self._log = observer, log
        self.progress: Mapping[str, Any] | None = None
        self._observed = metrics.side_outputs.setdefault(observer.name, Observed())
        size = max(1, observer.component.max_queued)
        self._queue: queue.Queue[Any] = queue.Queue(size)
        self._ended = threading.Event()
        self._is_open = False
        name = f"penstock-side-output-{observer.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, rows: ObservedRows) -> None:
        """Adds a batch to the queue; a batch that does not fit is missed."""
        try:
            self._queue.put_nowait(rows)
        except queue.Full:
            self.miss(f"the queue of {self._queue.maxsize} batches is full")

    def miss(self, reason: str) -> None:
        """Counts a batch that the side output does not get."""
        self._observed.missed += 1
        self._report(reason)

    def end(self) -> None:
        """Lets the thread end after the batches in the queue."""
        self._ended.set()

    def await_end(self, deadline: float) -> None:
        """Waits for the end of the thread. Counts the batches that remain as missed."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            remaining = self._queue.qsize() + 1
            self._observed.missed += remaining
            self._report(f"{remaining} batches were not handled by the end of the run")

    def _run(self) -> None:
        while not (self._ended.is_set() and self._queue.empty()):
            try:
                rows = self._queue.get(timeout=0.1)
            except queue.Empty:
                rows = None
            component = self.observer.component
            if rows is not None and self._call(component.observe, rows):
                self._observed.batches += 1
                self._observed.rows += rows.count
            metrics, self.progress = self.progress, None
            if metrics is not None:
                self._call(component.progress, metrics)
        if self._is_open:
            self._attempt(component.close)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> bool:
        """Calls a method of the open side output. Returns whether it has succeeded."""
        if not self._is_open:
            self._is_open = self._attempt(self.observer.component.open)
        if self._is_open and self._attempt(function, *arguments):
            return True
        if arguments and isinstance(arguments[0], ObservedRows):
            self._observed.missed += 1
        return False

    def _attempt(self, function: Callable[..., Any], *arguments: Any) -> bool:
        try:
            with exits_as_exceptions():
                function(*arguments)
        except Exception as error:
            self._observed.failures += 1
            self._report(exception_text(error))
            return False
        return True

    def _report(self, reason: str) -> None:
        """Logs a failure, once for several with the same reason."""
        if self._observed.error != reason:
            self._log.warning("side output failed", side_output=self.observer.name, error=reason)
        self._observed.error = reason
