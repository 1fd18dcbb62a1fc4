"""Windows over a topic whose partitions are not equally far in event time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka_records import put

from penstock import app
from penstock.runtime.handle import RunHandle
from servers.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
PIPELINE = """\
name: clicks
sources:
  clicks:
    type: kafka
    brokers: "{broker}"
    topic: {topic}
    max_records: {max_records}
    schema: at TIMESTAMP
    watermark: {{column: at, idle: {idle}}}
transforms:
  counts:
    type: sql
    sql: SELECT window.start AS at, count(*) AS n FROM clicks GROUP BY window(at, '1 minute')
sinks:
  out: {{type: files, from: counts, path: out, format: json}}
{more}runtime: {{state: state}}
"""
COPY = "  copy: {type: files, from: counts, path: copy, format: json}\n"


class Pipeline:
    """A pipeline that counts the rows of each minute of a topic with three partitions."""

    def __init__(self, broker: Kafka, spark: SparkSession, root: Path) -> None:
        self._broker, self._spark, self._root = broker, spark, root
        self._topic = broker.create_topic(partitions=3)

    def put(self, partition: int, minutes: Sequence[int]) -> None:
        """Writes a row in each of these minutes to a partition."""
        times = [START + timedelta(minutes=minute) for minute in minutes]
        rows = [json.dumps({"at": time.isoformat()}).encode() for time in times]
        put(self._broker, self._topic, *rows, partition=partition)

    def start(self, max_records: int = 1000, idle: str = "1 hour") -> RunHandle:
        """Starts the pipeline."""
        return app.start(self._write(max_records, idle), spark=self._spark.newSession())

    def catch_up(self, max_records: int) -> int:
        """Runs the pipeline until it has caught up. Returns the number of late rows."""
        file = self._write(max_records, "1 hour")
        options = app.RunOptions(until="caught_up")
        handle = app.start(file, spark=self._spark.newSession(), options=options)
        outcome = handle.wait(300)
        assert outcome is not None and outcome.errors == {}
        return int(handle.metrics.snapshot()["late_rows"])

    def backfill(self) -> None:
        """Writes the counts so far to another sink."""
        options = app.RunOptions(until="caught_up", backfill="copy")
        outcome = app.run(
            self._write(1000, "1 hour", COPY), spark=self._spark.newSession(), options=options
        )
        assert outcome.errors == {}

    def counts(self, sink: str = "out") -> dict[int, int]:
        """Returns the counts in a sink by minute; each minute is there once."""
        files = self._root.glob(f"{sink}/*.jsonl")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        counts = {datetime.fromisoformat(row["at"]): row["n"] for row in rows}
        assert len(counts) == len(rows)
        return {int((at - START).total_seconds()) // 60: n for at, n in counts.items()}

    def _write(self, max_records: int, idle: str, more: str = "") -> Path:
        file = self._root / "pipeline.yaml"
        broker, topic = self._broker.address, self._topic
        text = PIPELINE.format(
            broker=broker, topic=topic, max_records=max_records, idle=idle, more=more
        )
        file.write_text(text)
        return file


@pytest.fixture
def pipeline(kafka: Kafka, penstock_spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(kafka, penstock_spark, tmp_path)


@pytest.mark.parametrize(("size", "max_records"), [(60, 17), (6, 1)])
def test_no_row_of_a_partition_that_is_behind_is_late(
    pipeline: Pipeline, size: int, max_records: int
) -> None:
    ahead, behind = list(range(size)), [n // 10 for n in range(size * 2)]
    pipeline.put(0, ahead)
    pipeline.put(1, behind[:size])
    assert pipeline.catch_up(max_records) == 0
    pipeline.put(1, [*behind[size:], 100])
    pipeline.put(0, [100])
    assert pipeline.catch_up(max_records) == 0
    assert pipeline.counts() == Counter(ahead + behind)


def test_an_idle_partition_does_not_hold_back_windows(pipeline: Pipeline) -> None:
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


def await_counts(handle: RunHandle, pipeline: Pipeline, count: int) -> dict[int, int]:
    """Returns the counts once there are `count` of them."""
    for _ in range(120):
        assert handle.wait(0.5) is None
        if len(pipeline.counts()) >= count:
            break
    return pipeline.counts()
