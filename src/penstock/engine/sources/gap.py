"""Batches that do not start at once: after a gap without new records, or with enough records."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.files.durable import create_directory_durably

_DIRECTORY = "gap"
_LEADER, _OVER = "leader", "over"
_SEEN = "seen-"
LONGEST_WAIT = 0.1
"""The maximum seconds between two looks at a source during a session."""


@dataclass(frozen=True)
class Gap:
    """The time without new records, in seconds, and the directory that the sources share.

    With `records` it is the longest time that a record waits for others to be that many.
    """

    seconds: float
    directory: str
    records: int | None = None

    def at(self, node: str) -> Wait:
        """Returns the wait of a source."""
        return Session(self, node) if self.records is None else Filling(self, node)


def prepare_gap(checkpoint: Path) -> None:
    """Prepares the directory of the gap of a query that is about to start."""
    shutil.rmtree(checkpoint / _DIRECTORY, ignore_errors=True)
    create_directory_durably(checkpoint / _DIRECTORY)


def make_gap(
    checkpoint: Path | None, seconds: float | None, records: int | None = None
) -> Gap | None:
    """Returns the gap of a query with a checkpoint."""
    if checkpoint is None or seconds is None:
        return None
    return Gap(seconds, str(checkpoint / _DIRECTORY), records)


class Wait(ABC):
    """The wait for the next batch, for which each source of a query keeps a fact in a file.

    Spark asks the sources of a query one after another, in the same order each time. The first one
    decides for all of them.
    """

    def __init__(self, gap: Gap, node: str) -> None:
        self._gap, self._directory = gap, Path(gap.directory)
        self._file = self._directory / f"{_SEEN}{hashlib.sha256(node.encode()).hexdigest()}"
        self._leads: bool | None = None

    def is_over(self, end: Mapping[str, Any], unread: int | None = None) -> bool:
        """Returns whether a batch up to the latest offset may start; waits a moment otherwise.

        `unread` is the number of new records up to the offset, None if it is not known.
        """
        self._see(end, unread)
        if self._leads is None:
            self._leads = self._take_lead()
        if self._leads:
            self._decide()
        if (self._directory / _OVER).exists():
            self._start()
            return True
        time.sleep(min(self._gap.seconds / 10, LONGEST_WAIT))
        return False

    @abstractmethod
    def _see(self, end: Mapping[str, Any], unread: int | None) -> None:
        """Records the fact of the source at an offset."""

    @abstractmethod
    def _ends(self, facts: Sequence[Any]) -> bool:
        """Returns whether the facts of all sources end the wait."""

    def _start(self) -> None:  # noqa: B027
        """Records that a batch starts."""

    def _record(self, fact: Any) -> None:
        self._file.write_text(json.dumps(fact))

    def _take_lead(self) -> bool:
        try:
            (self._directory / _LEADER).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _decide(self) -> None:
        facts = [json.loads(file.read_text()) for file in self._directory.glob(f"{_SEEN}*")]
        if self._ends(facts):
            (self._directory / _OVER).touch()
        else:
            (self._directory / _OVER).unlink(missing_ok=True)


class Session(Wait):
    """The wait for a gap without new records: the fact of a source is the time of its last one."""

    _seen: Mapping[str, Any] | None = None

    def _see(self, end: Mapping[str, Any], unread: int | None) -> None:
        if end != self._seen:
            self._seen = dict(end)
            self._record(time.monotonic())

    def _ends(self, facts: Sequence[float]) -> bool:
        last = max(facts)
        return time.monotonic() - last >= self._gap.seconds


class Filling(Wait):
    """The wait for a number of records: the fact of a source is the time of its first new one, and
    their number."""

    _first: float | None = None

    def _see(self, end: Mapping[str, Any], unread: int | None) -> None:
        if unread == 0:
            self._first = None
        elif self._first is None:
            self._first = time.monotonic()
        self._record([self._first, unread or 0])

    def _ends(self, facts: Sequence[tuple[float | None, int]]) -> bool:
        firsts = [first for first, _ in facts if first is not None]
        if not firsts or self._gap.records is None:
            return False
        if sum(count for _, count in facts) >= self._gap.records:
            return True
        return time.monotonic() - min(firsts) >= self._gap.seconds

    def _start(self) -> None:
        self._first = None
        self._record([None, 0])
