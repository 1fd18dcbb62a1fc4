"""Crashes of workers: code of the user that ends its process, as by `os._exit()`.

Code that closes the connection of its worker to Spark, as by `os.closerange()`, ends the process,
too: it can return no rows. Spark repeats the task of a worker that died. A mark on disk shows the
next attempt that the user's code was running. The attempt runs the code in forks, which finds the
rows that end their process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark import SparkFiles, TaskContext

from penstock.core.errors import RecordError, Rejected
from penstock.core.time_limit import ALARM_INTERVAL, BLOCKED_EXIT, CallState, observe_calls
from penstock.engine.workers.connection import CONNECTION
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.forked import iterate_forked

T = TypeVar("T")
CODE = "function-crashed"
CLOSED_EXIT = 76
"""The exit code of a worker whose connection the user's code has closed."""


@contextmanager
def crash_mark(name: str) -> Iterator[bool]:
    """Marks the task during the context. `name` identifies the code within the task.

    Yields whether code of the user ended the worker of an earlier attempt.
    """
    context = TaskContext.get()
    if context is None:
        yield False
        return
    folder = Path(SparkFiles.getRootDirectory())
    task = f".penstock-{context.stageId()}-{context.partitionId()}"
    attempt = context.attemptNumber()
    if any(any(folder.glob(f"{task}-{earlier}-*")) for earlier in range(attempt)):
        yield True
        return
    mark = folder / f"{task}-{attempt}-{name}"
    mark.touch()
    CONNECTION.find()
    try:
        yield False
    finally:
        if not CONNECTION.is_open():
            os._exit(CLOSED_EXIT)
        mark.unlink(missing_ok=True)


def call_forked(call: Callable[[], T]) -> T:
    """Returns the result of a call in a fork of this process. Raises its exception.

    Raises RecordError if the fork dies or exceeds the time limit of its call: with the code
    `function-crashed` or `function-failed`, within FailedRow if the row is known.
    """
    state = CallState.shared()

    def items() -> Iterator[T]:
        observe_calls(state)
        yield call()

    def is_expired() -> bool:
        return state.is_expired(2 * ALARM_INTERVAL)

    def crash(end: str) -> RecordError:
        is_limit = state.is_expired() or end == f"exit code {BLOCKED_EXIT}"
        return state.error() if is_limit else _crash(end)

    try:
        (result,) = iterate_forked(items, crash, is_expired)
    except RecordError as error:
        row = state.row()
        if row is None:
            raise
        raise FailedRow(row, error) from None
    return result


def _crash(end: str) -> RecordError:
    if end == "exit code 0":
        # The fork was to send a result before this end.
        return Rejected("the function closed the files of its process", code=CODE)
    return Rejected(f"the function ended its process with {end}", code=CODE)
