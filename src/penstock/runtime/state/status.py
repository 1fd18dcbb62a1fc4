"""Status of a pipeline, read from its state directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.runtime.state.directory import StateDirectory


@dataclass(frozen=True)
class Status:
    """Status of a pipeline.

    `owner` is the current run. `numbers` are the metrics of the current run, or of the last one;
    None while a run starts and before the first run. `runs` are the finished runs, last first.
    """

    owner: Mapping[str, Any] | None
    numbers: Mapping[str, Any] | None
    runs: tuple[Mapping[str, Any], ...]
    complete: bool

    @property
    def starting(self) -> bool:
        """Whether a run has sources that have not subscribed yet."""
        return self.owner is not None and not (self.numbers or {}).get("started", False)

    @property
    def running(self) -> bool:
        """Whether a run reads all of its sources."""
        return self.owner is not None and not self.starting

    @classmethod
    def of(cls, state: StateDirectory) -> Status:
        """Reads the status from a state directory, which need not exist."""
        owner = state.owner()
        numbers = state.read("status.json")
        if owner and numbers and _modified(state) < _timestamp(owner.get("since")):
            numbers = None
        return cls(owner, numbers, tuple(history(state)), state.read("complete") is not None)


def history(state: StateDirectory) -> list[Mapping[str, Any]]:
    """Returns the finished runs, last first: id, version, began, ended, ending and errors.

    The `ending` of a run without an end of its own is `killed`.
    """
    killed = None if state.owner() else state.killed_run()
    runs = [*state.history(), *([] if killed is None else [killed])]
    return list(reversed(runs))


def _modified(state: StateDirectory) -> float:
    return (state.root / "status.json").stat().st_mtime


def _timestamp(text: str | None) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else 0.0
