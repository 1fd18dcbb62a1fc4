"""A receiving run is killed repeatedly: acknowledged messages are not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_receiving import kill_receiving
from pyspark.sql import SparkSession

from servers.mosquitto import Mosquitto
from servers.nats import Nats
from servers.rabbitmq import Rabbit

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


def test_nothing_that_was_acknowledged_is_missing(
    tmp_path: Path, mosquitto: Mosquitto, rabbitmq: Rabbit, nats: Nats,
    penstock_spark: SparkSession,
) -> None:  # fmt: skip
    servers = {"mqtt": mosquitto, "rabbitmq": rabbitmq, "jetstream": nats}
    sources = ("http", *servers)
    counts = kill_receiving(
        tmp_path, sources, kills=4, run_kills=2, messages=600, seed=21, servers=servers,
        spark=penstock_spark,
    )  # fmt: skip
    assert {
        name: (count.acknowledged, count.missing) for name, count in counts.items()
    } == dict.fromkeys(sources, (600, 0))
