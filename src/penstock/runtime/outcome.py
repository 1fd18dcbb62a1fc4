"""The outcome of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.core.errors import PenstockError

Ending = Literal["stopped", "complete", "caught_up", "failed", "changed_schema"]
"""`changed_schema` ends no run: the queries restart with other columns of their sources."""


@dataclass
class Outcome:
    """The end of a run."""

    ending: Ending
    errors: dict[str, PenstockError] = field(default_factory=dict)
    reason: str | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of the gravest error: 0 ok, 1 runtime, 2 user files, 3 outside, 4 state."""
        return max((e.policy.exit_code for e in self.errors.values()), default=0)
