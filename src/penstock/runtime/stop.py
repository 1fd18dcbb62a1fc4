"""Stop of a run: by signal, by its handle, or by a request in the state directory."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import Any

from penstock.core.errors import StateError
from penstock.core.files.private_files import FILE_MODE
from penstock.core.units import duration_text
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.files import writing
from penstock.runtime.state.status import Owner, current_owner

POLL_SECONDS = 0.2


class Stopped(Exception):
    """An exception of a query's thread, raised instead of the start of another batch."""


class Flag:
    """A flag that cannot be cleared. Setting takes no lock, so signal handlers may set the flag.

    It is also set if `whole` is.
    """

    def __init__(self, whole: Flag | None = None) -> None:
        self._set, self._whole = False, whole

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set or (self._whole is not None and self._whole.is_set())


class StopRequest:
    """A stop request. The first one finishes the batch under way, a second one stops at once.

    The request of a part of a run, which may end alone, has the request of the `run`.
    """

    def __init__(self, state: StateDirectory | None, run: StopRequest | None = None) -> None:
        self.requested: Flag = Flag(run.requested if run is not None else None)
        self.immediate: Flag = Flag(run.immediate if run is not None else None)
        self._reason: str | None = None
        self._state, self._run = state, run
        self._handlers: dict[int, Any] = {}
        self._notes: SimpleQueue[str | None] = SimpleQueue()
        self._notifier: threading.Thread | None = None

    @property
    def reason(self) -> str | None:
        """The reason of the first request."""
        return self._reason if self._run is None else self._run.reason

    def of_part(self) -> StopRequest:
        """Returns the request of a part of the run."""
        return StopRequest(None, self)

    def request(self, reason: str) -> None:
        """Requests a stop after the batch under way, or at once after an earlier request."""
        if self._run is not None:
            self._run.request(reason)
            return
        if self.requested.is_set():
            self.immediate.set()
        self._reason = self._reason or reason
        self.requested.set()

    def poll(self) -> None:
        """Takes the request of another process from the state directory."""
        if self._run is not None:
            self._run.poll()
            return
        if self._state is not None and not self.requested.is_set():
            path = self._state.root / "stop"
            if path.exists():
                path.unlink(missing_ok=True)
                self.request("stop requested")

    def install_signal_handlers(self, notify: Callable[[str], None] | None = None) -> None:
        """Turns SIGINT and SIGTERM into stop requests. Only in the main thread.

        `notify` is called on a thread of its own: a handler that logs could wait forever for the
        lock of an interrupted log line.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        if notify is not None:
            self._notifier = threading.Thread(target=self._notify, args=(notify,), daemon=True)
            self._notifier.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._handle_signal)

    def restore_signal_handlers(self) -> None:
        """Restores the signal handlers that `install_signal_handlers` replaced."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()
        if self._notifier is not None:
            self._notes.put(None)
            self._notifier.join()
            self._notifier = None

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        self.request("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
        self._notes.put(
            "stopping immediately" if self.immediate.is_set()
            else "finishing the batch; Ctrl-C again stops immediately"
        )  # fmt: skip

    def _notify(self, notify: Callable[[str], None]) -> None:
        while (note := self._notes.get()) is not None:
            notify(note)


def request_stop(state: StateDirectory) -> Owner | None:
    """Requests a stop of the run that owns the directory, and returns its owner.

    The run may be on another machine. Returns None if no run owns the directory.
    """
    owner = current_owner(state)
    if owner is None:
        return None
    if state.is_elsewhere():
        state.storage.request_stop()
    else:
        with writing(state.root / "stop"):
            (state.root / "stop").touch(FILE_MODE)
    return owner


def stop_run(state: StateDirectory, timeout: float) -> Owner | None:
    """Requests a stop of the run that owns the directory, waits for its end and returns its owner.

    Returns None if no run owns the directory. Raises StateError if the run does not end within
    `timeout` seconds.
    """
    owner = request_stop(state)
    if owner is None:
        return None
    deadline = time.monotonic() + timeout
    while current_owner(state) == owner:
        if time.monotonic() > deadline:
            raise StateError(
                f"the run ({owner}) did not stop within {duration_text(timeout)}",
                code="still-running",
                hint="Set a longer --timeout, or inspect the run with penstock status.",
            )
        time.sleep(POLL_SECONDS)
    return owner
