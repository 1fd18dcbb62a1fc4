"""A run between topics and files that is killed again and again, and the broker with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_anywhere import kill_anywhere

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


def test_at_random_moments(tmp_path: Path) -> None:
    kill_anywhere(
        tmp_path, kills=3, records=10_000, seed=7, source="kafka", sink="both", broker_kills=2
    )
