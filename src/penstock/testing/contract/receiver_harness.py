"""Receivers of the contract: a process as in a run, and a thread of the tests."""

from __future__ import annotations

import asyncio
import atexit
import pickle
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Any

from penstock.core.errors import Transient
from penstock.core.log import Silent
from penstock.engine.spark_session.warm import WarmPython
from penstock.journal import Journal, JournalReader
from penstock.runtime.receiving.receiver_process import await_first
from penstock.runtime.receiving.receivers import Receiver
from penstock.runtime.retry import RetryState
from penstock.sdk import ReceivingSource
from penstock.spec.runtime_models import Restart

RECEIVE_TIMEOUT = 30
_POLL_INTERVAL = 0.05
_BACKOFF = 0.1


class Receiving:
    """A receiver that is restarted after each end, as in a run."""

    def __init__(self, source: ReceivingSource[Any]) -> None:
        policy = Restart.model_validate(
            {"attempts": 1000, "backoff": "100ms", "max_backoff": "500ms"}
        )
        self._log = WarningLog()
        retries = RetryState(policy, self._log)
        python = start_warm_python().launcher
        self.receiver = Receiver(source, self._log, retries, python=python)
        self.journal = JournalReader(source.directory)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def await_ready(self) -> None:
        """Waits until the receiver is ready."""
        ready = self.receiver.ready.wait(RECEIVE_TIMEOUT)
        assert ready, f"expected journal.ready to be set, found it unset: {self._log.warnings}"

    def await_end(self, position: int) -> None:
        """Waits until the journal has received messages up to a position."""
        deadline = time.monotonic() + RECEIVE_TIMEOUT
        while self.journal.end() < position:
            assert time.monotonic() < deadline, (
                f"expected {position} messages, found {self.journal.end()} received and "
                f"{self.receiver.source.lost()} lost: {self._log.warnings}"
            )
            time.sleep(0.01)

    def close(self) -> None:
        """Stops the receiver and waits for its end."""
        self._closed.set()
        self._thread.join()
        self.receiver.request_stop()
        self.receiver.wait(time.monotonic() + RECEIVE_TIMEOUT)

    def _poll(self) -> None:
        while not self._closed.wait(_POLL_INTERVAL):
            error = self.receiver.poll()
            assert error is None, f"expected no permanent error, found {error!r}"


class WarningLog(Silent):
    """A log that collects warnings."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.warnings.append((event, facts))


class ReceivingInThread:
    """A receiver in a thread, restarted after each transient error. It starts no process."""

    def __init__(self, source: ReceivingSource[Any]) -> None:
        self.ready = threading.Event()
        """Set while messages are received."""
        self.journal = JournalReader(source.directory)
        self._pickled = pickle.dumps(source)
        self._closed = threading.Event()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self.errors: list[Exception] = []
        """The errors since the start. The last one has ended it if it is not transient."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def await_ready(self) -> None:
        """Waits until the receiver is ready."""
        ready = self.ready.wait(RECEIVE_TIMEOUT)
        assert ready, f"expected journal.ready to be set, found it unset: {self.errors}"

    def await_end(self, position: int) -> None:
        """Waits until the journal has received messages up to a position."""
        deadline = time.monotonic() + RECEIVE_TIMEOUT
        while self.journal.end() < position:
            assert time.monotonic() < deadline, (
                f"expected {position} messages, found {self.journal.end()} received and "
                f"{self.journal.lost()} lost: {self.errors}"
            )
            time.sleep(0.01)

    def close(self) -> None:
        """Stops the receiver and waits for its end."""
        self._closed.set()
        if self._running is not None:
            loop, end = self._running
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end.set)
        self._thread.join(RECEIVE_TIMEOUT)
        assert not self._thread.is_alive(), "expected the end of the receiver, found it running"

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            end = asyncio.Event()
            self._running = (runner.get_loop(), end)
            while not self._closed.is_set():
                try:
                    runner.run(self._receive(end))
                except Exception as error:
                    self.errors.append(error)
                    if not isinstance(error, Transient):
                        break
                self.ready.clear()
                self._closed.wait(_BACKOFF)
            self._running = None

    async def _receive(self, end: asyncio.Event) -> None:
        source: ReceivingSource[Any] = pickle.loads(self._pickled)
        with source.journal() as journal:
            watching = asyncio.create_task(self._watch(journal))
            try:
                await await_first(source.receive(journal), end)
            finally:
                watching.cancel()

    async def _watch(self, journal: Journal) -> None:
        while not journal.ready.is_set():
            await asyncio.sleep(0.005)
        self.ready.set()


@cache
def start_warm_python() -> WarmPython:
    """Starts the process that receivers are forked from. A fork is faster than a start."""
    warm = WarmPython.start()
    atexit.register(warm.stop)
    return warm
