"""Receivers in threads of this process: no process is started for them."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from penstock.core.errors import Transient
from penstock.journal import Journal, JournalReader
from penstock.runtime.receiving.receiver_process import await_first
from penstock.sdk import ReceivingSource

SECONDS = 60
SECONDS_TO_ARRIVE = 30
PAUSE = 0.1
"""Seconds between a failure and the next start."""


def receiving_here(source: ReceivingSource[Any]) -> Future[None]:
    """Runs `source.receive` in a thread, until it raises."""

    async def receive() -> None:
        with source.journal() as journal:
            await asyncio.wait_for(source.receive(journal), SECONDS)

    return ThreadPoolExecutor(1).submit(lambda: asyncio.run(receive()))


class ReceivingHere:
    """A receiver in a thread, which starts again after a transient error, as in a run.

    It has the methods of the contract's `Receiving`, whose receiver is a process.
    """

    def __init__(self, source: ReceivingSource[Any]) -> None:
        self.receiver = self
        self.ready = threading.Event()
        """Set while messages are received."""
        self.journal = JournalReader(source.directory)
        self._pickled = pickle.dumps(source)
        self._ended = threading.Event()
        self._end: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def await_ready(self) -> None:
        """Returns when messages are received."""
        assert self.ready.wait(SECONDS_TO_ARRIVE), f"it never sets journal.ready: {self._errors}"

    def await_end(self, position: int) -> None:
        """Returns when the journal has had so many messages."""
        until = time.monotonic() + SECONDS_TO_ARRIVE
        while self.journal.end() < position:
            arrived = f"{self.journal.end()} of {position} messages arrived: {self._errors}"
            assert time.monotonic() < until, arrived
            time.sleep(0.01)

    def close(self) -> None:
        """Ends it and waits for its end."""
        self._ended.set()
        if self._end is not None:
            loop, event = self._end
            loop.call_soon_threadsafe(event.set)
        self._thread.join(SECONDS_TO_ARRIVE)
        assert not self._thread.is_alive(), "the receiver does not end"

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._end = (runner.get_loop(), asyncio.Event())
            while not self._ended.is_set():
                try:
                    runner.run(self._receive(self._end[1]))
                except Exception as error:
                    self._errors.append(error)
                    if not isinstance(error, Transient):
                        break
                self.ready.clear()
                self._ended.wait(PAUSE)
            self._end = None

    async def _receive(self, ended: asyncio.Event) -> None:
        source: ReceivingSource[Any] = pickle.loads(self._pickled)
        with source.journal() as journal:
            looking = asyncio.create_task(self._look(journal))
            try:
                await await_first(source.receive(journal), ended)
            finally:
                looking.cancel()

    async def _look(self, journal: Journal) -> None:
        while not journal.ready.is_set():
            await asyncio.sleep(0.005)
        self.ready.set()
