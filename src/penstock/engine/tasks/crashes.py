"""Crashes of workers: code of the user that ends its process, as by `os._exit()`.

Spark repeats the task of a worker that died. A mark on disk shows the next attempt that the user's
code was running. The attempt runs the code in forks, which finds the rows that end their process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark import SparkFiles, TaskContext

from penstock.core.errors import RecordError, Rejected
from penstock.sdk.forked import iterate_forked

T = TypeVar("T")
CODE = "function-crashed"
BLOCKED_EXIT = 75
"""The exit code of a process whose user's code ignores its time limit."""


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
    try:
        yield False
    finally:
        mark.unlink(missing_ok=True)


def call_forked(call: Callable[[], T]) -> T:
    """Returns the result of a call in a fork of this process. Raises its exception.

    Raises RecordError with the code `function-crashed` if the fork dies.
    """
    (result,) = iterate_forked(lambda: iter([call()]), _crash)
    return result


def _crash(end: str) -> RecordError:
    if end == f"exit code {BLOCKED_EXIT}":
        return Rejected("the function ignores its time limit", code=CODE)
    return Rejected(f"the function ended its process with {end}", code=CODE)
