"""Windows over a topic whose partitions are not equally far in event time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka_records import put
from minute_counts import MinuteCounts

from penstock.runtime.handle import RunHandle
from servers.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def pipeline(kafka: Kafka, penstock_spark: SparkSession, tmp_path: Path) -> MinuteCounts:
    topic = kafka.create_topic(partitions=3)

    def write(partition: int, payloads: Sequence[bytes]) -> None:
        put(kafka, topic, *payloads, partition=partition)

    source = {"type": "kafka", "brokers": kafka.address, "topic": topic}
    return MinuteCounts(source, write, penstock_spark, tmp_path)


@pytest.mark.parametrize(("size", "max_records"), [(60, 17), (6, 1)])
def test_no_row_of_a_partition_that_is_behind_is_late(
    pipeline: MinuteCounts, size: int, max_records: int
) -> None:
    pipeline.check_partition_behind(size, max_records)


def test_an_idle_partition_does_not_hold_back_windows(pipeline: MinuteCounts) -> None:
    """A backfill, which takes less time, has the same late rows."""
    pipeline.put(0, [0, 1, 2, 3])
    pipeline.put(1, [0])
    handle = pipeline.start(idle="1 second")
    try:
        assert await_counts(handle, pipeline, 3) == {0: 2, 1: 1, 2: 1}
        pipeline.put(1, [1, 3])
        pipeline.put(0, [4])
        assert await_counts(handle, pipeline, 4)[3] == 2
    finally:
        handle.stop()
    outcome = handle.wait(60)
    assert outcome is not None and outcome.errors == {}
    assert handle.metrics.snapshot()["late_rows"] == 1
    pipeline.backfill()
    assert pipeline.counts("copy") == pipeline.counts() == {0: 2, 1: 1, 2: 1, 3: 2}


def await_counts(handle: RunHandle, pipeline: MinuteCounts, count: int) -> dict[int, int]:
    """Returns the counts once there are `count` of them."""
    for _ in range(120):
        assert handle.wait(0.5) is None
        if len(pipeline.counts()) >= count:
            break
    return pipeline.counts()
