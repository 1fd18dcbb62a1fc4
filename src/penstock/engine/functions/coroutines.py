"""Concurrent calls of async functions, each within its time limit.

A function may swallow the cancellation at its time limit, and may block the event loop. The result
of a call counts as missing at its limit in both cases. An alarm interrupts a blocked loop. If the
function swallows the alarms, too, the worker ends, and the next attempt of the task finds the row.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from penstock.core.exits import exits_as_exceptions
from penstock.engine.tasks.crashes import BLOCKED_EXIT

_ALARMS = 3
"""The alarms that a call may swallow."""


_PATIENCE = 1.0
"""The seconds between alarms, and beyond the time limit."""
_calling: WeakSet[Any] = WeakSet()
"""The tasks of calls."""


class NoResult(Exception):
    """The end of a call at its time limit."""


class _Alarm(BaseException):
    """The interruption of a blocked event loop."""


Call = Callable[[], Coroutine[Any, Any, Any]]


def call_concurrently(calls: Sequence[Call], concurrency: int, timeout: float) -> list[Any]:
    """Returns the result of each call, in order: a value, or an exception of the call."""

    async def every() -> list[Any]:
        limit = asyncio.Semaphore(concurrency)
        beat = asyncio.ensure_future(_rearm_alarm(timeout))
        try:
            return list(await asyncio.gather(*(_within(call, limit, timeout) for call in calls)))
        finally:
            beat.cancel()

    with _alarm():
        return _event_loop().run_until_complete(every())


async def _within(call: Call, limit: asyncio.Semaphore, timeout: float) -> Any:
    async with limit:
        task = asyncio.ensure_future(_called(call))
        done, _ = await asyncio.wait({task}, timeout=timeout)
        if not done:
            task.cancel()
            task.add_done_callback(_retrieve_exception)
            await asyncio.sleep(0)
            return NoResult()
        return asyncio.CancelledError() if task.cancelled() else task.exception() or task.result()


async def _called(call: Call) -> Any:
    _calling.add(asyncio.current_task())
    try:
        with exits_as_exceptions(asyncio.CancelledError, GeneratorExit, _Alarm):
            return await call()
    except _Alarm:
        raise NoResult from None


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieves the exception of an abandoned call, which asyncio would log otherwise."""
    if not task.cancelled():
        task.exception()


@contextmanager
def _alarm() -> Iterator[None]:
    """Interrupts a call that blocks the event loop beyond the time limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    alarms: Counter[int] = Counter()

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        task = asyncio.current_task()
        if task not in _calling:
            return
        alarms[id(task)] += 1
        if alarms[id(task)] > _ALARMS:
            os._exit(BLOCKED_EXIT)
        raise _Alarm

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


async def _rearm_alarm(timeout: float) -> None:
    """Postpones the alarm as long as the event loop runs."""
    if threading.current_thread() is not threading.main_thread():
        return
    while True:
        signal.setitimer(signal.ITIMER_REAL, timeout + _PATIENCE)
        await asyncio.sleep(timeout / 4)


_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""The event loop by process. A fork keeps that of its parent, whose end would affect the parent."""


def _event_loop() -> asyncio.AbstractEventLoop:
    """Returns the event loop of this process, which functions may keep clients in."""
    loop = _loops.get(os.getpid())
    if loop is None or loop.is_closed():
        loop = _loops[os.getpid()] = asyncio.new_event_loop()
    return loop
