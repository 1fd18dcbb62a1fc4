"""Report of a task: a file that the task writes, or sends to the driver with its result.

On a local master tasks write into the spool themselves, which takes less CPU. On a cluster the
driver writes the files, because executors may have another disk.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import IO, Any, Protocol

from pyspark.accumulators import Accumulator

from penstock.core.errors import StateError
from penstock.core.files.durable import rename_durably, sync
from penstock.core.files.private_files import create_directory, open_private
from penstock.core.units import size_text
from penstock.engine.reports.channel import Entry, channel

MAX_BYTES = 64 << 20
"""The maximum size of a report that Spark passes to the driver."""


class Report(Protocol):
    """A report that is written. Its `file` becomes visible when it is published."""

    file: IO[bytes]

    def publish(self, *, replaces: bool = True) -> None:
        """Publishes the file. One that does not replace an earlier file is discarded then."""


def begin_report(path: Path, *, durable_below: Path | None = None) -> Report:
    """Begins the report of a task with this path on the driver.

    With `durable_below` the file is on disk when its batch is committed, and so are its folders
    below that directory.
    """
    accumulator = channel()
    if accumulator is None:
        return FileReport(path, durable_below)
    return SentReport(path, durable_below, accumulator)


class FileReport:
    """A file of the spool."""

    def __init__(self, path: Path, durable_below: Path | None) -> None:
        self._path, self._durable_below = path, durable_below
        create_directory(path.parent)
        self._hidden = path.with_name(f".{path.name}.{time.monotonic_ns()}")
        self.file: IO[bytes] = open_private(self._hidden, "wb")

    def publish(self, *, replaces: bool = True) -> None:
        self.file.close()
        if not replaces and self._path.exists():
            self._hidden.unlink()
        elif self._durable_below is not None:
            rename_durably(self._hidden, self._path)
            sync_folders(self._path.parent, self._durable_below)
        else:
            self._hidden.rename(self._path)


class SentReport:
    """A file that is shipped to the driver with the result of its task."""

    def __init__(
        self, path: Path, durable_below: Path | None, accumulator: Accumulator[Any]
    ) -> None:
        self._path, self._durable_below, self._accumulator = path, durable_below, accumulator
        self.file: IO[bytes] = io.BytesIO()

    def publish(self, *, replaces: bool = True) -> None:
        assert isinstance(self.file, io.BytesIO)
        content = self.file.getvalue()
        if len(content) > MAX_BYTES:
            raise StateError(
                f"the dead letters and late rows of a task take {size_text(len(content))}, more "
                f"than the {size_text(MAX_BYTES)} that an executor sends to the driver",
                code="report-too-large",
                hint="Read smaller batches by the options of the source, or correct the error "
                "that makes so many dead letters.",
            )
        below = None if self._durable_below is None else str(self._durable_below)
        self._accumulator.add([tuple(Entry(str(self._path), content, below, replaces))])


def sync_folders(folder: Path, below: Path) -> None:
    """Makes the parents of a folder durable up to `below`, also those that other tasks made."""
    for directory in folder.parents:
        sync(directory)
        if directory == below:
            break
