"""Runs between topics and files that are killed again and again, and the broker with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_anywhere import Delivery, End, kill_anywhere

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


@pytest.mark.parametrize(
    ("source", "sink", "delivery"),
    [("kafka", "files", "exactly_once"), ("kafka", "kafka", "exactly_once")],
)
def test_at_random_moments(tmp_path: Path, source: End, sink: End, delivery: Delivery) -> None:
    kill_anywhere(
        tmp_path, kills=3, records=20_000, seed=7, source=source, sink=sink, delivery=delivery,
        broker_kills=1,
    )  # fmt: skip
