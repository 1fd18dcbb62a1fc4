"""Summary of a run."""

from __future__ import annotations

import pytest

from penstock.cli.summary import describe_ending
from penstock.runtime.outcome import Outcome


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome("complete"), "is complete"),
        (Outcome("caught_up"), "has caught up"),
        (Outcome("failed"), "failed"),
        (Outcome("stopped"), "stopped"),
        (Outcome("stopped", reason="Ctrl-C"), "stopped (Ctrl-C)"),
    ],
)
def test_the_ending(outcome: Outcome, text: str) -> None:
    assert describe_ending(outcome) == text
