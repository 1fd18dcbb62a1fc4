"""Concurrent calls of async functions, each within its time limit.

A function may swallow the cancellation at its time limit, and may block the event loop. The result
of a call counts as missing at its limit in both cases. An alarm interrupts a blocked loop. If the
function swallows the alarms, too, or blocks the interpreter, the worker ends, and the next attempt
of the task finds the row.
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

from penstock.core.exits import Interruption, exits_as_exceptions
from penstock.core.time_limit import (
    ALARM_INTERVAL,
    ALARMS,
    BLOCKED_EXIT,
    NoResult,
    alarm_handler,
    call_state,
    end_process_after,
)

_calling: WeakSet[Any] = WeakSet()
"""The tasks of calls."""
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

    with _alarm(timeout):
        return _event_loop().run_until_complete(every())


async def _within(call: Call, limit: asyncio.Semaphore, timeout: float) -> Any:
    async with limit:
        task = asyncio.ensure_future(_called(call, timeout))
        done, _ = await asyncio.wait({task}, timeout=timeout)
        if not done:
            task.cancel()
            task.add_done_callback(_retrieve_exception)
            await asyncio.sleep(0)
            return NoResult.within(timeout)
        return asyncio.CancelledError() if task.cancelled() else task.exception() or task.result()


async def _called(call: Call, timeout: float) -> Any:
    _calling.add(asyncio.current_task())
    try:
        with exits_as_exceptions(asyncio.CancelledError, GeneratorExit):
            return await call()
    except Interruption:
        raise NoResult.within(timeout) from None


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieves the exception of an abandoned call, which asyncio would log otherwise."""
    if not task.cancelled():
        task.exception()


@contextmanager
def _alarm(timeout: float) -> Iterator[None]:
    """Interrupts a call that blocks the event loop beyond the time limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    alarms: Counter[int] = Counter()

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, ALARM_INTERVAL)
        end_process_after(timeout + ALARM_INTERVAL)
        call_state().start(timeout)
        task = asyncio.current_task()
        if task not in _calling:
            return
        alarms[id(task)] += 1
        if alarms[id(task)] > ALARMS:
            os._exit(BLOCKED_EXIT)
        raise Interruption

    with alarm_handler(interrupt):
        try:
            yield
        finally:
            call_state().end()


async def _rearm_alarm(timeout: float) -> None:
    """Postpones the alarm as long as the event loop runs."""
    if threading.current_thread() is not threading.main_thread():
        return
    while True:
        signal.setitimer(signal.ITIMER_REAL, timeout + ALARM_INTERVAL)
        end_process_after(2 * (timeout + ALARM_INTERVAL))
        call_state().start(timeout)
        await asyncio.sleep(timeout / 4)


_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""The event loop by process. A fork keeps that of its parent, whose end would affect the parent."""


def _event_loop() -> asyncio.AbstractEventLoop:
    """Returns the event loop of this process, which functions may keep clients in."""
    loop = _loops.get(os.getpid())
    if loop is None or loop.is_closed():
        loop = _loops[os.getpid()] = asyncio.new_event_loop()
    return loop
