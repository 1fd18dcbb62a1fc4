"""Stopping a run in good order: by signal, or by a request in the state directory."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import Any

from penstock.core.errors import StateError
from penstock.core.units import duration_text
from penstock.runtime.state import StateDirectory

POLL = 0.2


class Stopped(Exception):
    """Raised in a query's thread instead of beginning another batch."""


class Flag:
    """Once set, it stays. Unlike an Event it takes no lock, so signal handlers may set it."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set


class StopRequest:
    """Asked for once: the batch under way is finished. Asked for twice: at once."""

    def __init__(self, state: StateDirectory | None) -> None:
        self.asked = Flag()
        self.urgent = Flag()
        self.reason: str | None = None
        self._state = state
        self._before: dict[int, Any] = {}
        self._notes: SimpleQueue[str | None] = SimpleQueue()
        self._teller: threading.Thread | None = None

    def ask(self, reason: str) -> None:
        """Stops the run after the batch under way, or at once if asked before."""
        if self.asked.is_set():
            self.urgent.set()
        self.reason = self.reason or reason
        self.asked.set()

    def look(self) -> None:
        """Sees a request that another process left in the state directory."""
        if self._state is not None and not self.asked.is_set():
            path = self._state.root / "stop"
            if path.exists():
                path.unlink(missing_ok=True)
                self.ask("asked to stop")

    def on_signals(self, told: Callable[[str], None] | None = None) -> None:
        """Ctrl-C and SIGTERM ask to stop. Only in the main thread.

        `told` is called on a thread of its own: a handler that logs would wait for ever for the
        lock of the log line that it interrupts.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        if told is not None:
            self._teller = threading.Thread(target=self._tell, args=(told,), daemon=True)
            self._teller.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._signalled)

    def off_signals(self) -> None:
        """Puts back what was there before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        if self._teller is not None:
            self._notes.put(None)
            self._teller.join()
            self._teller = None

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.ask("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
        self._notes.put(
            "stopping at once" if self.urgent.is_set()
            else "finishing the batch under way; once more stops at once"
        )  # fmt: skip

    def _tell(self, told: Callable[[str], None]) -> None:
        while (note := self._notes.get()) is not None:
            told(note)


def stop_other(state: StateDirectory, timeout: float) -> dict[str, Any] | None:
    """Asks the run that owns the directory to stop, and waits for its end. Returns that owner.

    None when nothing runs. Raises StateError when the run goes on for longer than `timeout`.
    """
    owner = state.owner()
    if owner is None:
        return None
    (state.root / "stop").touch()
    until = time.monotonic() + timeout
    while state.owner() == owner:
        if time.monotonic() > until:
            raise StateError(
                f"the run (process {owner.get('pid', '?')} on {owner.get('host', '?')}) is asked "
                f"to stop, but did not end within {duration_text(timeout)}",
                code="still-running",
                hint="wait longer with --timeout, or look at it with penstock status",
            )
        time.sleep(POLL)
    return owner
