"""Status of a pipeline, read from its state directory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.observe.snapshot import Snapshot
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.entries import HISTORY, RUN
from penstock.runtime.state.files import Stamp, reading, stamp_of
from penstock.runtime.state.foreign import read_numbers
from penstock.runtime.state.lock import parse_owner, read_owner_text

NUMBERS = "status.json"
"""The file with the metrics of a run."""


@dataclass(frozen=True)
class Owner:
    """The process of a run. `since` is its start, as ISO 8601. None is unknown.

    `identity` is that of `core.process_identity`: no other process has it.
    """

    pid: int | None = None
    host: str | None = None
    since: str | None = None
    identity: str | None = None

    def __str__(self) -> str:
        return f"process {self.pid or '?'} on {self.host or '?'}"


@dataclass(frozen=True)
class FinishedRun:
    """A run that has ended. Times are ISO 8601 in UTC.

    `ending` is `killed` for a run without an end of its own. `errors` are reports by the name of
    the query, receiver or `run`. `exit_code` is that of the process; None if it is not known.
    """

    id: str
    began: str
    ended: str
    ending: str
    version: str | None = None
    exit_code: int | None = None
    errors: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Status:
    """Status of a pipeline.

    `owner` is the current run. `numbers` are the metrics of the current run, or of the last one;
    None while a run starts and before the first run. `runs` are the finished runs, last first.
    `stopping` is whether a stop of the run is requested. `age` is the time since the run has
    written the numbers, in seconds.
    """

    owner: Owner | None
    numbers: Snapshot | None
    runs: tuple[FinishedRun, ...]
    complete: bool
    stopping: bool = False
    age: float = 0.0

    @property
    def starting(self) -> bool:
        """Whether a run has sources that have not subscribed yet."""
        is_started = self.numbers is not None and self.numbers.get("started", False)
        return self.owner is not None and not is_started

    @property
    def running(self) -> bool:
        """Whether a run reads all of its sources."""
        return self.owner is not None and not self.starting

    @classmethod
    def of(cls, state: StateDirectory) -> Status:
        """Reads the status from a state directory, which need not exist."""
        return StatusReader(state).read()


class StatusReader:
    """Reading of one status again and again: a file is read once for each of its changes.

    The lock is tried each time. For one thread.
    """

    def __init__(self, state: StateDirectory) -> None:
        self.state = state
        self._numbers_path = state.root / NUMBERS
        self._lock = state.lock
        self._owner: tuple[bytes, Owner | None] = (b"", Owner())
        self._stop, self._complete = state.root / "stop", state.root / "complete"
        self._history, self._run = state.root / HISTORY, state.root / RUN
        self._numbers: tuple[Stamp | None, Snapshot | None] = (None, None)
        self._runs: tuple[object, tuple[FinishedRun, ...]] = (object(), ())

    def read(self) -> Status:
        """Returns the status now. Raises StateError if a file cannot be read or is damaged."""
        owner = self._current_owner()
        stamp = stamp_of(self._numbers_path)
        if stamp is None or stamp != self._numbers[0]:
            self._numbers = stamp, read_numbers(self._numbers_path)
        numbers, modified = self._numbers[1], stamp[2] / 1e9 if stamp else 0.0
        runs = self._finished_runs(owner, stamp)
        if owner is not None and numbers and modified < _timestamp(owner.since):
            numbers = None
        is_stopping = bool(numbers and numbers.get("stopping", False))
        return Status(
            owner, numbers, runs, stamp_of(self._complete) is not None,
            stopping=owner is not None and (is_stopping or stamp_of(self._stop) is not None),
            age=max(time.time() - modified, 0.0) if numbers else 0.0,
        )  # fmt: skip

    def _current_owner(self) -> Owner | None:
        with reading(self._lock):
            text = read_owner_text(self._lock)
        if text is None:
            return _owner(self.state.storage.owner())
        if text != self._owner[0]:
            self._owner = text, _owner(parse_owner(text))
        return self._owner[1]

    def _finished_runs(self, owner: Owner | None, numbers: Stamp | None) -> tuple[FinishedRun, ...]:
        """Returns the finished runs. Without an owner the last one may have been killed."""
        files: object = stamp_of(self._history)
        if owner is None:
            files = files, stamp_of(self._run), numbers
        if files != self._runs[0]:
            self._runs = files, tuple(_runs_of(self.state, is_running=owner is not None))
        return self._runs[1]


def current_owner(state: StateDirectory) -> Owner | None:
    """Returns the process of the current run; None without a run."""
    return _owner(state.owner())


def _owner(facts: Mapping[str, Any] | None) -> Owner | None:
    if facts is None:
        return None
    since = facts.get("since") if _is_time(facts.get("since")) else None
    return Owner(facts.get("pid"), facts.get("host"), since, facts.get("identity"))


def history(state: StateDirectory) -> list[FinishedRun]:
    """Returns the finished runs, last first."""
    return _runs_of(state, is_running=state.owner() is not None)


def _runs_of(state: StateDirectory, *, is_running: bool) -> list[FinishedRun]:
    killed = None if is_running else state.killed_run()
    runs = [*state.history(), *([] if killed is None else [killed])]
    names = FinishedRun.__dataclass_fields__
    return [
        FinishedRun(**{name: value for name, value in run.items() if name in names})
        for run in reversed(runs)
    ]


def _is_time(text: Any) -> bool:
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True


def _timestamp(text: str | None) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else 0.0
