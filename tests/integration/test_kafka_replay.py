"""A batch that some of its writers have written is repeated, by a Spark with other settings."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from kafka_records import put, rows
from pyspark.sql import SparkSession

from penstock import app
from penstock.connectors.kafka.transactions import INTERNAL_TOPIC
from penstock.runtime.outcome import Outcome
from servers.kafka import Kafka

pytestmark = pytest.mark.spark

WRITERS = 3
KEYS = [f"key-{number}" for number in range(12)]
ROWS = 1_200
PAYLOADS = [json.dumps({"id": ROWS + number, "key": KEYS[0]}).encode() for number in range(30)]
PIPELINE = """\
name: replay
sources:
  readings: {type: kafka, brokers: "BROKERS", topic: PREFIX-readings, schema: "id LONG, key STRING"}
transforms:
  addressed:
    type: sql
    sql: |
      SELECT id, key, concat('PREFIX-', if(key IN (LATE), 'late', 'early')) AS topic FROM readings
sinks:
  out:
    type: kafka
    from: addressed
    brokers: "BROKERS"
    topic: "{topic}"
    key: "{key}"
    exclude_columns: [topic]
    delivery: exactly_once
    on_error: fail
    concurrency: WRITERS
    properties: {topic.metadata.propagation.max.ms: 2000}
runtime:
  state: state
  restart: {attempts: 0}
  spark: {SETTINGS}
"""


class Pipeline:
    """A pipeline whose last writer fails after the other writers have committed."""

    def __init__(self, broker: Kafka, spark: SparkSession, root: Path) -> None:
        self.broker, self._spark, self._root = broker, spark, root
        self._prefix = uuid.uuid4().hex[:8]
        frame = spark.createDataFrame([(key,) for key in KEYS], "key STRING")
        divided = frame.repartition(WRITERS, "key").selectExpr("key", "spark_partition_id()")
        self.writers = dict(tuple(row) for row in divided.collect())

    def topic(self, name: str) -> str:
        """The topic as the broker knows it."""
        return f"{self._prefix}-{name}"

    def run(self, settings: str = "", writers: int = WRITERS) -> Outcome:
        """Until it has caught up."""
        late = [f"'{key}'" for key, writer in self.writers.items() if writer == WRITERS - 1]
        text = PIPELINE.replace("BROKERS", self.broker.address).replace("LATE", ", ".join(late))
        text = text.replace("PREFIX", self._prefix)
        file = self._root / "pipeline.yaml"
        file.write_text(text.replace("WRITERS", str(writers)).replace("SETTINGS", settings))
        options = app.RunOptions(until="caught_up")
        return app.run(file, spark=self._spark.newSession(), options=options)

    def remove_last_commit(self) -> None:
        """Removes the commit of the last batch, as if the run was killed before."""
        log = self._root / "state/replay/checkpoints/readings/commits"
        last = max((p for p in log.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
        last.unlink()

    def restore_empty_logs(self) -> None:
        """Removes all entries of the checkpoint, as if the state was restored from a backup."""
        checkpoint = self._root / "state/replay/checkpoints/readings"
        for log in ("offsets", "commits"):
            shutil.rmtree(checkpoint / log)

    def through(self) -> set[int]:
        """The writers that have committed the first batch."""
        metadata = self._root / "state/replay/checkpoints/readings/metadata"
        query = json.loads(metadata.read_text())["id"]
        return {n for n in range(WRITERS) if self._marker(f"penstock.replay.out.{n}.{query}") == 1}

    def _marker(self, group: str) -> int | None:
        try:
            return self.broker.committed(group, INTERNAL_TOPIC).get(0)
        except KafkaException:
            return None


@pytest.fixture
def pipeline(breakable_kafka: Kafka, penstock_spark: SparkSession, tmp_path: Path) -> Pipeline:
    broker, pipeline = breakable_kafka, Pipeline(breakable_kafka, penstock_spark, tmp_path)
    broker.create_topic(pipeline.topic("readings"), partitions=4)
    broker.create_topic(pipeline.topic("early"))
    for number, key in enumerate(KEYS):
        ids = range(number, ROWS, len(KEYS))
        records = (json.dumps({"id": id_, "key": key}).encode() for id_ in ids)
        put(broker, pipeline.topic("readings"), *records, partition=number % 4)
    return pipeline


@pytest.mark.parametrize("writers", [WRITERS - 1, WRITERS + 2])
def test_each_row_once_and_in_order(pipeline: Pipeline, writers: int) -> None:
    """The repeated batch has the writers of its first attempt, the next batch the new number."""
    failed = pipeline.run()
    assert [error.code for error in failed.errors.values()] == ["unknown-topic"]
    through = pipeline.through()
    assert through and through < set(range(WRITERS))

    pipeline.broker.create_topic(pipeline.topic("late"))
    assert pipeline.run("spark.sql.shuffle.partitions: 7", writers).ending == "caught_up"
    assert pipeline.through() == set(range(WRITERS))
    assert_once_and_in_order(pipeline)

    pipeline.remove_last_commit()
    assert pipeline.run("spark.sql.shuffle.partitions: 1", 1).ending == "caught_up"
    assert_once_and_in_order(pipeline)

    pipeline.restore_empty_logs()
    put(pipeline.broker, pipeline.topic("readings"), *PAYLOADS)
    outcome = pipeline.run()
    assert outcome.exit_code == 4
    assert [error.code for error in outcome.errors.values()] == ["state-older-than-sink"]
    assert_once_and_in_order(pipeline)


def assert_once_and_in_order(pipeline: Pipeline) -> None:
    """Every row is there once, and the rows of a key are in order."""
    for topic in ("early", "late"):
        pipeline.broker.await_visible(pipeline.topic(topic))
        found = rows(pipeline.broker, pipeline.topic(topic))
        expected = {
            key
            for key, writer in pipeline.writers.items()
            if (writer == WRITERS - 1) == (topic == "late")
        }
        assert {row["key"] for row in found} == expected
        for number, key in enumerate(KEYS):
            if key in expected:
                ids = [row["id"] for row in found if row["key"] == key]
                assert ids == list(range(number, ROWS, len(KEYS)))
