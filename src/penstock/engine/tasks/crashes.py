"""Crashes of workers: code of the user that ends its process, as by `os._exit()`.

Code that closes the connection of its worker to Spark, as by `os.closerange()`, ends the process,
too: it can return no rows. Spark repeats the task of a worker that died. A mark on disk shows the
next attempt that the user's code was running. The attempt runs the code in forks, which finds the
rows that end their process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkFiles, TaskContext

from penstock.engine.workers.connection import CONNECTION

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
