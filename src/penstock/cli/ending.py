"""How a run ended, in words, and what to do about its dead letters."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.plan.model import Plan
    from penstock.runtime.supervise import Outcome

_WORDS = {"complete": "is complete", "caught_up": "has caught up", "failed": "failed"}


def ending(outcome: Outcome) -> str:
    """`is complete`, `has caught up`, `stopped (Ctrl-C)`, `failed`."""
    if outcome.ending == "stopped":
        return f"stopped ({outcome.reason})" if outcome.reason else "stopped"
    return _WORDS[outcome.ending]


def dead_letter_hint(plan: Plan, count: int, files: Sequence[Path]) -> str | None:
    """Where the dead letters of a run are; None where there are none."""
    if not count:
        return None
    letters = plural(count, "dead letter")
    if plan.dead_letter is not None:
        return f"{letters}, written to the dead_letter sink (type: {plan.dead_letter.type})"
    return f"{letters}; see them with: penstock dead list {shlex.join(map(str, files))}"
