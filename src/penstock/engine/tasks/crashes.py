"""Crashes of workers: code of the user that ends its process, as by `os._exit()`.

Code that closes the sockets of its worker, as by `os.closerange()`, ends the process, too: it can
return no rows. Spark repeats the task of a worker that died. A mark on disk shows the next attempt
that the user's code was running. The attempt runs the code in forks, which finds the rows that end
their process.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

from pyspark import SparkFiles, TaskContext

from penstock.core.errors import RecordError, Rejected
from penstock.sdk.forked import iterate_forked

T = TypeVar("T")
CODE = "function-crashed"
CLOSED_EXIT = 76
"""The exit code of a worker whose sockets the user's code has closed."""
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
    sockets = _worker_sockets()
    try:
        yield False
    finally:
        if any(_inode(number) != inode for number, inode in sockets):
            os._exit(CLOSED_EXIT)
        mark.unlink(missing_ok=True)


@cache
def _worker_sockets() -> tuple[tuple[int, int | None], ...]:
    """Returns the descriptors of sockets that are open at the first call, with their inodes."""
    numbers = (int(path.name) for path in Path("/dev/fd").iterdir())
    return tuple((number, inode) for number in numbers if (inode := _inode(number)) is not None)


def _inode(number: int) -> int | None:
    """Returns the inode of the descriptor of a socket; None for another or a closed one."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_ino if stat.S_ISSOCK(status.st_mode) else None


def call_forked(call: Callable[[], T]) -> T:
    """Returns the result of a call in a fork of this process. Raises its exception.

    Raises RecordError with the code `function-crashed` if the fork dies.
    """
    (result,) = iterate_forked(lambda: iter([call()]), _crash)
    return result


def _crash(end: str) -> RecordError:
    if end == f"exit code {BLOCKED_EXIT}":
        return Rejected("the function ignores its time limit", code=CODE)
    if end == "exit code 0":
        # The fork was to send a result before this end.
        return Rejected("the function closed the files of its process", code=CODE)
    return Rejected(f"the function ended its process with {end}", code=CODE)
