"""How a pipeline is doing, from its state directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.runtime.state import StateDirectory


@dataclass(frozen=True)
class Status:
    """`owner` is the run under way. `numbers` are its own, or the last run's where none is.

    `numbers` are None while a run starts and where there never was one. `runs` are the runs that
    ended, the last one first.
    """

    owner: Mapping[str, Any] | None
    numbers: Mapping[str, Any] | None
    runs: tuple[Mapping[str, Any], ...]
    complete: bool

    @property
    def running(self) -> bool:
        return self.owner is not None

    @classmethod
    def of(cls, state: StateDirectory) -> Status:
        """Reads the directory; there need not be one."""
        owner = state.owner()
        numbers = state.read("status.json")
        if owner and numbers and _written(state) < _time(owner.get("since")):
            numbers = None
        return cls(owner, numbers, tuple(_runs(state)), state.read("complete") is not None)


def _runs(state: StateDirectory) -> list[Mapping[str, Any]]:
    path = state.root / "runs.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in reversed(lines) if line.endswith("}")]


def _written(state: StateDirectory) -> float:
    return (state.root / "status.json").stat().st_mtime


def _time(text: str | None) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else 0.0
