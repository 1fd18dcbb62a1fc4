"""Compacted topics as lookup tables: updates and tombstones between batches, and restarts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from integration.pipelines import Workspace
from servers.kafka import Kafka, count_clients

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPT = """
    CREATE TABLE orders (id INT, user INT) WITH (
        connector = 'files', path = 'in/*.jsonl', watch = {watch}, order = 'name'
    );
    CREATE TEMPORARY TABLE users (id INT PRIMARY KEY, name STRING) WITH (
        connector = 'kafka', bootstrap_servers = '{address}', topic = '{topic}', type = 'lookup',
        format = '{format}', 'lookup.cache.max_bytes' = 1000000
    );
    CREATE TABLE out WITH (connector = 'memory', name = 'out') AS
    SELECT o.id, u.name FROM orders AS o LEFT JOIN users AS u ON o.user = u.id;
"""


def put_users(kafka: Kafka, topic: str, rows: Mapping[int, str | None]) -> None:
    """Writes the names of users, each to the partition of its key. None is a tombstone."""
    producer = Producer(kafka.client())
    for key, name in rows.items():
        value = None if name is None else json.dumps({"id": key, "name": name}).encode()
        producer.produce(topic, value, str(key).encode(), partition=key % 2)
    assert producer.flush(30) == 0


def put_order(workspace: Workspace, number: int, *users: int) -> None:
    """Writes a file with an order of each user: one batch."""
    lines = [json.dumps({"id": number * 10 + index, "user": u}) for index, u in enumerate(users)]
    workspace.put(f"in/{number}.jsonl", lines)


def names(workspace: Workspace) -> list[tuple[Any, ...]]:
    return sorted(workspace.result().select("id", "name").rows())


@pytest.fixture
def workspace(tmp_path: Path, penstock_spark: SparkSession) -> Workspace:
    made = Workspace(tmp_path, penstock_spark)
    made.file = "pipeline.sql"
    return made


def test_batches_have_the_last_values_of_keys(kafka: Kafka, workspace: Workspace) -> None:
    topic = kafka.create_topic(uuid.uuid4().hex, partitions=2)
    put_users(kafka, topic, {1: "ann", 2: "bob", 3: "eve"})
    put_users(kafka, topic, {2: "bo", 3: None})
    text = SCRIPT.format(address=kafka.address, topic=topic, format="json", watch="{watch}")
    put_order(workspace, 1, 1, 2, 3)
    handle = workspace.start(text.format(watch="true"))
    try:
        workspace.await_rows(handle, "out", 3)
        put_users(kafka, topic, {1: None, 3: "eva"})
        put_order(workspace, 2, 1, 2, 3)
        workspace.await_rows(handle, "out", 6)
    finally:
        handle.stop()
        outcome = handle.wait(60)
    assert outcome is not None and outcome.errors == {}
    before = [(10, "ann"), (11, "bo"), (12, None), (20, None), (21, "bo"), (22, "eva")]
    assert names(workspace) == before
    put_users(kafka, topic, {1: "anna", 2: None})
    put_order(workspace, 3, 1, 2, 3)
    workspace.run(text.format(watch="false"))
    assert names(workspace) == [*before, (30, "anna"), (31, None), (32, "eva")]


def test_a_table_of_debezium_events(kafka: Kafka, workspace: Workspace) -> None:
    """An event that changes the key removes the row with the former key."""
    topic = kafka.create_topic(uuid.uuid4().hex, partitions=1)
    ann, bob = {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}
    events = [
        {"op": "c", "before": None, "after": ann},
        {"op": "c", "before": None, "after": bob},
        {"op": "u", "before": ann, "after": {"id": 4, "name": "ann"}},
        {"op": "d", "before": bob, "after": None},
        {"op": "d", "before": {"id": 9, "name": "x"}, "after": None},
    ]
    producer = Producer(kafka.client())
    for event in events:
        producer.produce(topic, json.dumps(event).encode(), b"1")
    producer.produce(topic, None, b"2")
    assert producer.flush(30) == 0
    put_order(workspace, 1, 1, 2, 4)
    text = SCRIPT.format(address=kafka.address, topic=topic, format="debezium_json", watch="false")
    before = count_clients()
    workspace.run(text)
    assert count_clients() <= before
    assert names(workspace) == [(10, None), (11, None), (12, "ann")]
