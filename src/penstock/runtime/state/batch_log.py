"""Log of the last batches of a pipeline, over its runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import Any

from penstock.core.files.rotated_file import KEPT_FILES, RotatedFile, numbered
from penstock.observe.batches import FailedBatch, FinishedBatch
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.entries import BATCHES
from penstock.runtime.state.files import reading

MAX_BYTES = 10**6
"""The size of a file, of about 2,500 batches."""


class BatchLog:
    """The log of a run's batches. Each entry has a number, which counts over all runs.

    A write that fails is dropped: the log affects no run.
    """

    def __init__(self, state: StateDirectory, run: str) -> None:
        self._path, self._run = state.root / BATCHES, run
        self._file: RotatedFile | None = None
        last = next(iter(read_batches(state, limit=1)), None)
        self._next = int(last["entry"]) + 1 if last else 1

    def add(self, batch: FinishedBatch | FailedBatch) -> None:
        """Adds a batch that all sinks have committed. A failed one is repeated, and not added."""
        if isinstance(batch, FailedBatch):
            return
        entry = {"entry": self._next, "run": self._run, **asdict(batch), "rows": batch.rows}
        self._next += 1
        with suppress(OSError):
            if self._file is None:
                self._file = RotatedFile(self._path, MAX_BYTES)
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()


def read_batches(
    state: StateDirectory, *, limit: int, query: str | None = None, before: int | None = None
) -> list[dict[str, Any]]:
    """Returns the last batches, or those before an entry, last first.

    Raises StateError if the log cannot be read.
    """
    found = (
        entry
        for entry in _entries(state)
        if (before is None or entry["entry"] < before) and query in (None, entry["query"])
    )
    return list(islice(found, limit))


def _entries(state: StateDirectory) -> Iterator[dict[str, Any]]:
    """Yields all entries, last first. A line that was not written to its end is skipped.

    An entry whose file is renamed meanwhile is not repeated.
    """
    last = sys.maxsize
    for number in range(KEPT_FILES):
        path = numbered(state.root / BATCHES, number)
        with reading(path):
            text = path.read_text() if path.exists() else ""
        for line in reversed(text.splitlines()):
            with suppress(ValueError):
                entry = json.loads(line)
                if entry["entry"] < last:
                    last = entry["entry"]
                    yield entry
