"""A run between topics and files that is killed again and again, and the broker with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_anywhere import kill_anywhere
from pyspark.sql import SparkSession

from servers.kafka import Kafka

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


def test_at_random_moments(
    tmp_path: Path, breakable_kafka: Kafka, penstock_spark: SparkSession
) -> None:
    """A process without a broker, and a driver between two sinks after the broker is back."""
    kill_anywhere(
        tmp_path, kills=2, records=4_000, seed=178, source="kafka", sink="both", broker_kills=2,
        broker=breakable_kafka, spark=penstock_spark,
    )  # fmt: skip
