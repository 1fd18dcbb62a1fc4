"""The summary of a run: its ending and its dead letters."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.plan.model import Plan
    from penstock.runtime.supervise import Outcome

_ENDINGS = {"complete": "is complete", "caught_up": "has caught up", "failed": "failed"}


def describe_ending(outcome: Outcome) -> str:
    """Returns `is complete`, `has caught up`, `stopped (Ctrl-C)` or `failed`."""
    if outcome.ending == "stopped":
        return f"stopped ({outcome.reason})" if outcome.reason else "stopped"
    return _ENDINGS[outcome.ending]


def dead_letter_hint(plan: Plan, count: int, files: Sequence[Path]) -> str | None:
    """Returns the location of the dead letters of a run; None without dead letters."""
    if not count:
        return None
    letters = plural(count, "dead letter")
    if plan.dead_letter is not None:
        return f"{letters}, written to the dead_letter sink (type: {plan.dead_letter.type})"
    return f"{letters}; run: penstock dead list {shlex.join(map(str, files))}"
