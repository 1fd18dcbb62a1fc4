"""Compacted topics as tables: tombstones are read and written, over restarts."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from penstock import app
from penstock.runtime.dead_letters.store import DeadLetters
from servers.kafka import Kafka

pytestmark = pytest.mark.spark

Records = list[tuple[str, dict[str, Any] | None]]


def put(kafka: Kafka, topic: str, records: Records) -> None:
    """Writes records, each key to one partition."""
    producer = Producer(kafka.client())
    for key, value in records:
        payload = None if value is None else json.dumps(value).encode()
        producer.produce(topic, payload, key, partition=len(key) % 2)
    assert producer.flush(30) == 0


def table(kafka: Kafka, topic: str) -> dict[bytes, Any]:
    """Returns the last value of each key; None is a tombstone."""
    latest = {message.key(): message.value() for message in kafka.messages(topic)}
    return {key: value and json.loads(value) for key, value in latest.items()}


def test_a_table_is_copied(kafka: Kafka, tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Also Debezium events of the same changes are written, to other topics without their key."""
    name = uuid.uuid4().hex
    given = kafka.create_topic(f"{name}-in", partitions=2)
    kept = kafka.create_topic(f"{name}-kept", partitions=2)
    events = kafka.create_topic(f"{name}-events")
    names = kafka.create_topic(f"{name}-names")
    script = tmp_path / "copy.sql"
    script.write_text(f"""
        CREATE TABLE users (id INT PRIMARY KEY, name STRING) WITH (
            connector = 'kafka', brokers = '{kafka.address}', topic = '{given}',
            tombstones = 'delete', max_records = 3
        );
        CREATE TABLE kept (id INT PRIMARY KEY, name STRING) WITH (
            connector = 'kafka', brokers = '{kafka.address}', topic = '{kept}'
        );
        CREATE TABLE events (id INT PRIMARY KEY, name STRING) WITH (
            connector = 'kafka', brokers = '{kafka.address}', topic = '{events}',
            format = 'debezium_json'
        );
        CREATE TABLE names WITH (
            connector = 'kafka', brokers = '{kafka.address}', topic = '{names}',
            format = 'debezium_json'
        );
        INSERT INTO kept SELECT id, name FROM users WHERE name <> 'hidden';
        INSERT INTO events SELECT id, name FROM users;
        INSERT INTO names SELECT upper(name) AS name FROM users WHERE name IS NOT NULL;
    """)

    def run() -> Any:
        plan = app.plan(script)
        options = app.RunOptions(until="caught_up")
        outcome = app.run(plan, spark=penstock_spark.newSession(), options=options)
        assert (outcome.ending, outcome.errors) == ("caught_up", {})
        return plan

    ann, bob, eve = ({"id": 1, "name": "ann"}, {"id": 22, "name": "bob"}, {"id": 3, "name": "eve"})
    put(kafka, given, [("1", ann), ("22", bob), ("3", eve), ("22", None), ("22", bob), ("9", None),
                       ("key", None)])  # fmt: skip
    run()
    assert table(kafka, kept) == {b"1": ann, b"22": bob, b"3": eve, b"9": None}
    hidden, new = {"id": 3, "name": "hidden"}, {"id": 44, "name": "new"}
    put(kafka, given, [("1", None), ("3", hidden), ("22", {**bob, "name": "b"}), ("44", new),
                       ("44", None)])  # fmt: skip
    plan = run()
    changed = {b"1": None, b"22": {"id": 22, "name": "b"}, b"3": None, b"9": None}
    assert {**table(kafka, kept), b"44": None} == {**changed, b"44": None}
    dead_letters = DeadLetters(plan.state / "dead_letters").read().to_pylist()
    assert {letter["code"] for letter in dead_letters} == {"wrong-type"}
    codes = [json.loads(message.value())["op"] for message in kafka.messages(events)]
    assert sorted(codes) == ["d"] * 4 + ["u"] * 7
    keyless = kafka.messages(names)
    assert {message.key() for message in keyless} == {None}
    after = [json.loads(message.value())["after"] for message in keyless]
    assert sorted(row["name"] for row in after if row) == [
        "ANN", "B", "BOB", "BOB", "EVE", "HIDDEN", "NEW"
    ]  # fmt: skip
