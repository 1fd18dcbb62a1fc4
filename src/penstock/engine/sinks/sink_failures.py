"""Failures of sinks during a batch: tasks report them in files, and the driver reads the files.

Spark passes an error to the driver only after all attempts of a task. The files show a failure that
a sink retries, and one that Spark retries, while the task is running.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from penstock.core.error_codec import decode, encode, raised_in
from penstock.core.errors import Bug, PenstockError, Transient
from penstock.core.files.private_files import create_directory, open_private
from penstock.engine.spark_session.shared_paths import shares_state
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk.retries import reported_retries

FOLDER = "failing_sinks"
ATTEMPTS = 2
"""The attempts of a task to write to a sink. Further attempts of Spark fail at once."""
PERIOD = 0.5
"""The shortest time between two reports of a task, in seconds."""


@dataclass(frozen=True)
class SinkFailure:
    """The last failure of a sink in the batch under way. `since` is the time of the first one."""

    sink: str
    since: float
    error: PenstockError


@dataclass
class SinkReport:
    """The report of a task that writes to a sink: a file while the sink fails.

    A task on another disk has no file: its failure is known to the driver once Spark reports it.
    """

    path: Path | None
    sink: str
    _failures: int = 0
    _since: float = 0.0
    _reported: float = field(default=-inf, repr=False)

    @classmethod
    def begin(cls, spool: Spool, partition: int, attempt: int) -> SinkReport:
        """Begins an attempt of a task. Raises the last failure after `ATTEMPTS` failures."""
        if spool.directory is None or not shares_state():
            return cls(None, spool.node)
        path = Path(spool.directory) / FOLDER / f"{spool.node}-{partition}.json"
        report = cls(path, spool.node)
        if attempt == 0:
            path.unlink(missing_ok=True)
        elif (found := _read(path)) is not None:
            failure, report._failures = found
            report._since = failure.since
            if report._failures >= ATTEMPTS:
                raise failure.error
        return report

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Reports the transient failures of calls of the sink, whose errors are of its node."""
        with reported_retries(self._report), raised_in(self.sink):
            try:
                yield
            except Transient as error:
                self._failures += 1
                self._write(error)
                raise

    def clear(self) -> None:
        """Removes the report after a successful write."""
        if self.path is not None and self._since:
            self.path.unlink(missing_ok=True)
            self._failures, self._since, self._reported = 0, 0.0, -inf

    def _report(self, error: PenstockError) -> None:
        if time.monotonic() - self._reported >= PERIOD:
            self._write(error)

    def _write(self, error: PenstockError) -> None:
        if self.path is None:
            return
        self._reported = time.monotonic()
        self._since = self._since or time.time()
        content = {
            "sink": self.sink,
            "since": self._since,
            "failures": self._failures,
            "error": encode(error),
        }
        hidden = self.path.with_name(f".{self.path.name}.{time.monotonic_ns()}")
        with suppress(OSError):  # the failure of the sink matters more than that of its report
            create_directory(self.path.parent)
            with open_private(hidden, "w") as file:
                json.dump(content, file)
            hidden.rename(self.path)


def read_failure(spool: Path) -> SinkFailure | None:
    """Returns the sink that fails in the batch under way, or None. `spool` is that of the query.

    The failure is the last one of all tasks, since the first one.
    """
    found = [_read(path) for path in (spool / FOLDER).glob("[!.]*.json")]
    failures = [entry[0] for entry in found if entry is not None]
    if not failures:
        return None
    last = max(failures, key=lambda failure: failure.since)
    return SinkFailure(last.sink, min(failure.since for failure in failures), last.error)


def clear_failures(spool: Path) -> None:
    """Removes the reports of an earlier attempt at a batch."""
    shutil.rmtree(spool / FOLDER, ignore_errors=True)


def _read(path: Path) -> tuple[SinkFailure, int] | None:
    """Returns the failure in a file and the failed attempts of its task; None without the file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    error = decode(content["error"])
    if error is None:
        raise Bug(f"{path} has no error")
    return SinkFailure(content["sink"], content["since"], error), content["failures"]
