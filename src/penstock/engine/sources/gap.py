"""Batches that start after a gap: once no source of the query has had new records for a time."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.files.durable import create_directory_durably

_DIRECTORY = "gap"
_LEADER, _OVER = "leader", "over"
_LAST = "last-"
LONGEST_WAIT = 0.1
"""The maximum seconds between two looks at a source during a session."""


@dataclass(frozen=True)
class Gap:
    """The time without new records, in seconds, and the directory that the sources share."""

    seconds: float
    directory: str


def prepare_gap(checkpoint: Path) -> None:
    """Prepares the directory of the gap of a query that is about to start."""
    shutil.rmtree(checkpoint / _DIRECTORY, ignore_errors=True)
    create_directory_durably(checkpoint / _DIRECTORY)


def make_gap(checkpoint: Path | None, seconds: float | None) -> Gap | None:
    """Returns the gap of a query with a checkpoint."""
    if checkpoint is None or seconds is None:
        return None
    return Gap(seconds, str(checkpoint / _DIRECTORY))


class Session:
    """The records of a source since the last batch, which a gap ends.

    Spark asks the sources of a query one after another, in the same order each time. The first one
    decides for all of them.
    """

    def __init__(self, gap: Gap, node: str) -> None:
        self._seconds, self._directory = gap.seconds, Path(gap.directory)
        self._last = self._directory / f"{_LAST}{hashlib.sha256(node.encode()).hexdigest()}"
        self._seen: Mapping[str, Any] | None = None
        self._leads: bool | None = None

    def is_over(self, end: Mapping[str, Any]) -> bool:
        """Returns whether a batch up to the latest offset may start; waits a moment otherwise."""
        if end != self._seen:
            self._seen = dict(end)
            self._last.write_text(str(time.monotonic()))
        if self._leads is None:
            self._leads = self._take_lead()
        if self._leads:
            self._decide()
        if (self._directory / _OVER).exists():
            return True
        time.sleep(min(self._seconds / 10, LONGEST_WAIT))
        return False

    def _take_lead(self) -> bool:
        try:
            (self._directory / _LEADER).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _decide(self) -> None:
        last = max(float(file.read_text()) for file in self._directory.glob(f"{_LAST}*"))
        if time.monotonic() - last >= self._seconds:
            (self._directory / _OVER).touch()
        else:
            (self._directory / _OVER).unlink(missing_ok=True)
