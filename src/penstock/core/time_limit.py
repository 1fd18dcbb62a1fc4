"""Time limits of calls of the user's code, in the main thread of a process.

An alarm interrupts a call at its limit. Code that swallows the alarms, and native code that does
not return to the interpreter, end the process: another process then finds the call.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Any, TypeVar

from penstock.core.errors import Rejected
from penstock.core.exits import Interruption, as_exception
from penstock.core.units import duration_text

T = TypeVar("T")
DEFAULT_TIMEOUT = 3600.0
"""The seconds of a call that is not asynchronous."""
BLOCKED_EXIT = 75
"""The exit code of a process whose user's code ignores its time limit."""
ALARMS = 3
"""The alarms that a call may swallow."""
ALARM_INTERVAL = 1.0
"""The seconds between the alarms of a call that swallows them."""
GRACE = 3.0
"""The seconds for a slow machine to handle an alarm, before the process ends."""
IDLE = float("-inf")
"""The number in place of that of a call while none runs."""
_LONGEST = 1e9
"""The maximum seconds of a timer."""
_SHORTEST = 0.001
_ALARM = {signal.SIGALRM}
_ALARMS_WITHIN_LIMIT = 4
"""A call is seen by an alarm, so it ends within 1.25 times its limit."""


class NoResult(Rejected):
    """The end of a call at its time limit."""

    default_code = "function-failed"

    @classmethod
    def within(cls, seconds: float) -> NoResult:
        return cls(f"no result within {duration_text(seconds)}")


class CallState:
    """The running call of a process and its time limit.

    `cells` are the number of the call and the seconds of the limit. The number is the index of the
    row, or negative for a call without a row.
    """

    def __init__(self, cells: Any = None) -> None:
        self.cells = [IDLE, 0.0] if cells is None else cells
        self.cells[0] = IDLE
        self._numbers = count(1)
        self._seen: tuple[float, float] = (IDLE, 0.0)

    @classmethod
    def shared(cls) -> CallState:
        """Returns the state of a fork of this process, which both processes access."""
        return cls(memoryview(mmap.mmap(-1, 16)).cast("d"))

    def start(self, seconds: float) -> None:
        """Sets the start of a call without a row."""
        self.cells[1] = seconds
        self.cells[0] = -next(self._numbers)
        self.seconds()

    def end(self) -> None:
        """Sets the end of the call."""
        self.cells[0] = IDLE
        self.seconds()

    def row(self) -> int | None:
        """Returns the index of the row of the running call, or None."""
        return int(self.cells[0]) if self.cells[0] >= 0 else None

    def seconds(self) -> float:
        """Returns for how long the running call has been seen."""
        number, now = self.cells[0], monotonic()
        if number == IDLE or number != self._seen[0]:
            self._seen = number, now
        return now - self._seen[1]

    def is_expired(self, grace: float = 0) -> bool:
        """Returns whether a call runs beyond its limit and a grace period."""
        seconds, limit = self.seconds(), self.cells[1]
        return bool(self.cells[0] != IDLE and seconds >= limit + grace)

    def error(self) -> NoResult:
        """Returns the error of a call that exceeds its limit."""
        return NoResult.within(self.cells[1])


class _Process:
    """The state of this process, and whether its parent observes it."""

    state = CallState()
    is_observed = False


def observe_calls(state: CallState) -> None:
    """Sets the state of this process, which its parent observes. The parent ends the process."""
    _Process.state, _Process.is_observed = state, True


def call_state() -> CallState:
    """Returns the state of this process."""
    return _Process.state


def end_process_after(seconds: float) -> None:
    """Ends this process after some seconds and a grace period, also within native code.

    Replaces the earlier time. The traceback is written to standard error.
    """
    if _Process.is_observed:
        return
    # The thread of faulthandler inherits the mask. Python does not see a signal to another thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ALARM)
    faulthandler.dump_traceback_later(min(seconds + GRACE, _LONGEST), exit=True, file=2)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ALARM)


@contextmanager
def alarm_handler(handler: Callable[..., None]) -> Iterator[None]:
    """Handles alarms within the context, and then cancels the alarm and the end of the process."""
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not _Process.is_observed:
            faulthandler.cancel_dump_traceback_later()
        # Another thread may still receive an alarm, whose default action ends the process.
        signal.signal(signal.SIGALRM, previous if callable(previous) else _ignore)


def _ignore(*_: object) -> None:
    pass


class _Alarm:
    """The alarms of calls that run one after another."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._state = call_state()
        self._interrupted, self._alarms = IDLE, 0

    def __call__(self, *_: object) -> None:
        """Interrupts the running call if it exceeds its limit."""
        number = self._state.cells[0]
        remaining = self._seconds - self._state.seconds()
        if number == IDLE or remaining > 0:
            self.set(max(min(remaining, self._seconds / _ALARMS_WITHIN_LIMIT), _SHORTEST))
            return
        self._alarms = self._alarms + 1 if number == self._interrupted else 1
        self._interrupted = number
        if self._alarms > ALARMS:
            os._exit(BLOCKED_EXIT)
        self.set(ALARM_INTERVAL)
        raise Interruption

    def set(self, seconds: float) -> None:
        """Sets the alarm. A native call that delays the alarm by the limit ends the process."""
        signal.setitimer(signal.ITIMER_REAL, min(seconds, _LONGEST))
        end_process_after(seconds + self._seconds)


@contextmanager
def limit_calls(seconds: float) -> Iterator[Any]:
    """Yields the cells of the state of calls for several rows, each within a time limit.

    The first cell must be set to the index of the row for a call, and to IDLE after it. The main
    thread raises Interruption in a call that exceeds the limit.
    """
    state = call_state()
    state.end()
    state.cells[1] = seconds
    if threading.current_thread() is not threading.main_thread():
        yield state.cells
        return
    alarm = _Alarm(seconds)
    with alarm_handler(alarm):
        alarm.set(seconds / _ALARMS_WITHIN_LIMIT)
        yield state.cells


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Returns the result of a call. Raises NoResult after the time limit.

    Raises an Exception in place of SystemExit and others.
    """
    state = call_state()
    try:
        with limit_calls(seconds):
            try:
                state.start(seconds)
                return function()
            finally:
                state.end()
    except Exception:
        raise
    except Interruption:
        raise NoResult.within(seconds) from None
    except BaseException as error:
        raise as_exception(error) from error
