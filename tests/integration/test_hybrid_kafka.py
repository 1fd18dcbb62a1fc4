"""A lake and then the topic that it stores: no record is missing, and none is read twice."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_records import put
from pipelines import Workspace

from penstock.core.errors import Permanent
from servers.kafka import Kafka

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  orders:
    type: hybrid
    schema: id LONG, partition INT, offset LONG
    metadata: {{kafka_partition: partition, kafka_offset: offset, path: path}}
    phases:
      - {{type: files, path: lake/*.parquet, order: name, max_files: 1}}
      - {{type: kafka, brokers: "{brokers}", topic: {topic}, start: latest}}
    handover: {{partition: partition, offset: offset}}
transforms:
  placed:
    type: sql
    sql: |
      SELECT id, coalesce(kafka_partition, partition) AS p, coalesce(kafka_offset, offset) AS o,
             path IS NULL AS streamed FROM orders
sinks:
  out: {{type: memory, from: placed}}
"""
STORED = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (None, None, None)]
"""The rows of the lake: id, partition, offset."""


def store(workspace: Workspace, name: str, rows: list[tuple[Any, ...]]) -> None:
    types = {"id": pa.int64(), "partition": pa.int32(), "offset": pa.int64()}
    (workspace.root / "lake").mkdir(exist_ok=True)
    columns = dict(zip(types, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns, pa.schema(types)), workspace.root / "lake" / name)


def produce(kafka: Kafka, topic: str, records: dict[int, list[Any]]) -> None:
    for partition, ids in records.items():
        payloads = [
            id_ if isinstance(id_, bytes) else json.dumps({"id": id_}).encode() for id_ in ids
        ]
        put(kafka, topic, *payloads, partition=partition)


def test_the_topic_continues_the_lake(kafka: Kafka, workspace: Workspace) -> None:
    """Partition 2 has no record in the lake."""
    topic = kafka.create_topic(partitions=3)
    produce(kafka, topic, {0: [1, 2, 4], 1: [3, 5, b"bad"], 2: [6]})
    store(workspace, "0.parquet", STORED[:2])
    store(workspace, "1.parquet", STORED[2:])
    text = PIPELINE.format(brokers=kafka.address, topic=topic)
    workspace.run(text, until="caught_up")
    expected = [
        (1, 0, 0, False), (2, 0, 1, False), (3, 1, 0, False), (None, None, None, False),
        (4, 0, 2, True), (5, 1, 1, True), (6, 2, 0, True),
    ]  # fmt: skip
    assert sorted(workspace.result().rows(), key=str) == sorted(expected, key=str)
    (letter,) = workspace.dead_letters()
    assert (letter["payload"], letter["origin"], letter["position"]) == (
        b"bad", f"2:{topic}:1", 2,
    )  # fmt: skip
    produce(kafka, topic, {1: [7]})
    store(workspace, "2.parquet", [(7, 1, 3)])
    workspace.run(text, until="caught_up")
    assert workspace.result().rows()[len(expected) :] == [(7, 1, 3, True)]


def test_a_position_that_does_not_exist(kafka: Kafka, workspace: Workspace) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, {0: [1]})
    store(workspace, "0.parquet", [(1, 0, 7)])
    handle = workspace.start(PIPELINE.format(brokers=kafka.address, topic=topic))
    outcome = handle.wait(100)
    assert outcome is not None
    (error,) = outcome.errors.values()
    assert isinstance(error, Permanent) and error.code == "unknown-offset"
    assert error.message == f"cannot start at offset 8 of {topic} [0]: the offset does not exist"


@pytest.mark.parametrize("action", ["fail", "continue"])
def test_the_topic_has_lost_records_after_the_lake(
    kafka: Kafka, workspace: Workspace, action: str
) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, {0: [1, 2, 3, 4]})
    kafka.delete_records(topic, {0: 3})
    store(workspace, "0.parquet", STORED[:2])
    text = PIPELINE.format(brokers=kafka.address, topic=topic)
    text = text.replace("start: latest", f"start: latest, on_data_loss: {action}")
    outcome = workspace.start(text, until="caught_up").wait(100)
    assert outcome is not None
    if action == "fail":
        assert [error.code for error in outcome.errors.values()] == ["data-gone"]
        return
    assert outcome.errors == {}
    assert sorted(row[0] for row in workspace.result().rows()) == [1, 2, 4]
    (letter,) = workspace.dead_letters()
    assert (letter["code"], letter["position"]) == ("data-gone", 2)
