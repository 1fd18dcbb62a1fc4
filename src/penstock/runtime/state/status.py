"""Status of a pipeline, read from its state directory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.observe.snapshot import Snapshot
from penstock.runtime.state.directory import StateDirectory


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
        owner = current_owner(state)
        numbers: Snapshot | None = state.read("status.json")
        modified = _modified(state) if numbers else 0.0
        if owner is not None and numbers and modified < _timestamp(owner.since):
            numbers = None
        return cls(
            owner, numbers, tuple(history(state, owner)), state.read("complete") is not None,
            stopping=owner is not None and _is_stopping(state, numbers),
            age=max(time.time() - modified, 0.0) if numbers else 0.0,
        )  # fmt: skip


def current_owner(state: StateDirectory) -> Owner | None:
    """Returns the process of the current run; None without a run."""
    owner = state.owner()
    if owner is None:
        return None
    return Owner(owner.get("pid"), owner.get("host"), owner.get("since"), owner.get("identity"))


def history(state: StateDirectory, owner: Owner | None = None) -> list[FinishedRun]:
    """Returns the finished runs, last first. `owner` is the process of a run that was found."""
    runs_now = owner is not None or state.owner() is not None
    killed = None if runs_now else state.killed_run()
    runs = [*state.history(), *([] if killed is None else [killed])]
    names = FinishedRun.__dataclass_fields__
    return [
        FinishedRun(**{name: value for name, value in run.items() if name in names})
        for run in reversed(runs)
    ]


def _is_stopping(state: StateDirectory, numbers: Snapshot | None) -> bool:
    return (state.root / "stop").exists() or bool(numbers and numbers.get("stopping", False))


def _modified(state: StateDirectory) -> float:
    return (state.root / "status.json").stat().st_mtime


def _timestamp(text: str | None) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else 0.0
