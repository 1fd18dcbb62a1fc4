"""Age of the state: batches that a sink has committed before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.core.errors import StateError
from penstock.engine.checkpoints.state_age import check_state_age
from penstock.sdk import BatchId


def node(last: BatchId | None) -> Any:
    sink = SimpleNamespace(last_batch=lambda query: last)
    return SimpleNamespace(sink=sink, label='sink "out"', where=None)


@pytest.mark.parametrize(
    "last",
    [None, BatchId("q", 4, "x"), BatchId("q", 5, "a"), BatchId("q", 5)],
    ids=["first", "next", "repeated", "of an earlier version"],
)
def test_current_state(last: BatchId | None) -> None:
    check_state_age(node(last), BatchId("q", 5, "a"), Path("state"))


@pytest.mark.parametrize("last", [BatchId("q", 5, "b"), BatchId("q", 6, "a"), BatchId("q", 6)])
def test_older_state(last: BatchId) -> None:
    with pytest.raises(StateError) as caught:
        check_state_age(node(last), BatchId("q", 5, "a"), Path("state"))
    assert caught.value.code == "state-older-than-sink"
    assert caught.value.policy.exit_code == 4
    assert "state in state" in caught.value.message and 'sink "out"' in caught.value.message
