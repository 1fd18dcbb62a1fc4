"""Inbox of a run: the driver's end of the channel, which writes the files of tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.errors import StateError
from penstock.core.files.durable import sync
from penstock.engine.reports.channel import CHANNEL, Entries, Entry
from penstock.engine.reports.report import FileReport, sync_folders
from penstock.engine.spark_session.local_property import local_property

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_inboxes: list[Inbox] = []
"""The open inboxes of this process."""


class Inbox(Entries):
    """The files that the tasks of a run send to a state directory.

    PySpark's thread calls it for each task that has succeeded, before Spark ends the job. A stage
    that is computed again sends the same paths, whose last content is kept.
    """

    def __init__(self, state: Path) -> None:
        self.state = state
        self._lock = threading.Lock()
        self._unsynced: dict[Path, Path] = {}
        self._error: Exception | None = None

    def addInPlace(
        self, first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        """Writes the files of a task. Spark discards an exception: `confirm` raises it."""
        try:
            for values in second:
                self._write(Entry(*values))
        except Exception as error:
            with self._lock:
                self._error = self._error or error
        return []

    def confirm(self) -> None:
        """Makes the durable files durable. Raises StateError if a file could not be written."""
        with self._lock:
            error, unsynced = self._error, self._unsynced
            self._unsynced = {}
        if error is not None:
            raise StateError(
                f"a report of a task cannot be written to {self.state}",
                code="unwritable-state", detail=str(error),
            ) from error  # fmt: skip
        for path, below in unsynced.items():
            sync(path)
            sync(path.parent)
            sync_folders(path.parent, below)

    def _write(self, entry: Entry) -> None:
        path = Path(entry.path)
        report = FileReport(path, None)
        report.file.write(entry.content)
        report.publish(replaces=entry.replaces)
        if entry.durable_below is not None:
            with self._lock:
                self._unsynced[path] = Path(entry.durable_below)


@contextmanager
def receiving(session: SparkSession, state: Path) -> Iterator[None]:
    """Receives the reports of tasks: of jobs of this thread, and of queries that it starts."""
    from pyspark import accumulators

    inbox = Inbox(state)
    accumulator = session.sparkContext.accumulator([], inbox)
    _inboxes.append(inbox)
    try:
        with local_property(session, CHANNEL, str(accumulator.aid)):
            yield
    finally:
        accumulators._accumulatorRegistry.pop(accumulator.aid, None)
        _inboxes.remove(inbox)


def confirm_reports(spool: Path | None) -> None:
    """Makes the dead letters of finished jobs durable. Raises StateError for a lost report.

    Does nothing for a local master, whose tasks have written them durably.
    """
    for inbox in tuple(_inboxes):
        if spool is not None and inbox.state in spool.parents:
            inbox.confirm()
