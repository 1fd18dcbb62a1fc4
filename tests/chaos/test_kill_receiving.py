"""Runs that receive are killed again and again: what senders were told is safe is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_receiving import kill_receiving

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


@pytest.mark.parametrize("source", ["http", "mqtt", "rabbitmq", "jetstream"])
def test_nothing_that_was_acknowledged_is_missing(tmp_path: Path, source: str) -> None:
    count = kill_receiving(tmp_path, source, kills=2, messages=2_000, seed=5)
    assert (count.acknowledged, count.missing) == (2_000, 0)
