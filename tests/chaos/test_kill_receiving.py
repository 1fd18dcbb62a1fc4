"""A run that receives is killed again and again: what senders were told is safe is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_receiving import kill_receiving

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


def test_nothing_that_was_acknowledged_is_missing(tmp_path: Path) -> None:
    sources = ("http", "mqtt", "rabbitmq", "jetstream")
    counts = kill_receiving(tmp_path, sources, kills=5, messages=2_000, seed=5)
    assert {
        name: (count.acknowledged, count.missing) for name, count in counts.items()
    } == dict.fromkeys(sources, (2_000, 0))
