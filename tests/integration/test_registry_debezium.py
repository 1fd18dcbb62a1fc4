"""Debezium events as Avro in Kafka topics, with their schemas in a registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_records import put
from pyspark.sql import SparkSession
from registry_formats import optional, payloads, read, written

from penstock import app
from penstock.app import RunOptions
from penstock.connectors import memory
from penstock.runtime.dead_letters.store import DeadLetters
from servers.apicurio import Apicurio
from servers.kafka import Kafka

pytestmark = pytest.mark.spark

SCRIPT = """\
CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING, city STRING) WITH (
    connector = 'kafka', brokers = '{kafka}', topic = '{topic}', format = 'debezium_avro',
    'debezium_avro.registry.url' = '{registry}', max_records = 5
);
CREATE TABLE kept (id BIGINT PRIMARY KEY, name STRING, city STRING)
WITH (connector = 'memory', name = '{topic}');
CREATE TABLE cities (city STRING PRIMARY KEY, users BIGINT) WITH (
    connector = 'kafka', brokers = '{kafka}', topic = '{topic}-out', format = 'debezium_avro',
    'debezium_avro.registry.url' = '{registry}'
);
INSERT INTO kept SELECT id, name, city FROM users;
INSERT INTO cities SELECT city, count(*) FROM users GROUP BY city;
"""


def envelope(*more: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema that Debezium registers for a table."""
    fields = [{"name": "id", "type": "long"}, optional("name"), optional("city"), *more]
    row = {"type": "record", "name": "Value", "fields": fields}
    source = {"type": "record", "name": "Source", "namespace": "io.debezium.connector.postgresql",
              "fields": [{"name": "lsn", "type": ["null", "long"], "default": None}]}  # fmt: skip
    return {
        "type": "record", "name": "Envelope", "namespace": "shop.public.users",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source}, {"name": "op", "type": "string"},
            optional("ts_ms", "long"),
        ],
        "connect.name": "shop.public.users.Envelope",
    }  # fmt: skip


def event(
    op: str, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"lsn": 1}, "op": op, "ts_ms": 2}


def user(id_: int, name: str, city: str, **more: str) -> dict[str, Any]:
    return {"id": id_, "name": name, "city": city, **more}


ANN, BOB, EVE = user(1, "ann", "Oslo"), user(2, "bob", "Rome"), user(3, "eve", "Oslo")
EVENTS = [
    event("r", None, ANN), event("c", None, BOB), event("d", user(9, "unknown", "Bern")),
    event("u", ANN, user(1, "ann", "Rome")), event("d", EVE), event("c", None, EVE),
    event("u", BOB, user(5, "bob", "Rome")), event("u", user(7, "x", "Bern"), user(7, "y", "Bern")),
    event("d", user(7, "y", "Bern")), event("c", None, user(5, "again", "Bern")),
]  # fmt: skip
"""Among them a change of a key, deletes and updates of unknown keys, and a delete that comes before
its create."""


def test_events_are_changes_and_changes_are_events(
    kafka: Kafka, apicurio: Apicurio, penstock_spark: SparkSession, tmp_path: Path
) -> None:
    topic = kafka.create_topic()
    kafka.create_topic(f"{topic}-out")
    put(kafka, topic, *written(apicurio, f"{topic}-value", envelope(), *EVENTS), b"no frame")
    wider = user(6, "zoe", "Bern", born="1990")
    put(kafka, topic, *written(
        apicurio, f"{topic}-value", envelope(optional("born")), event("c", None, wider)
    ))  # fmt: skip
    script = tmp_path / "users.sql"
    script.write_text(SCRIPT.format(kafka=kafka.address, topic=topic, registry=apicurio.url))
    plan = app.plan(script)
    options = RunOptions(until="caught_up")
    outcome = app.run(plan, spark=penstock_spark.newSession(), options=options)
    assert outcome.errors == {}
    rows = {row["id"]: (row["name"], row["city"]) for row in memory.tables[topic].to_pylist()}
    expected = {1: ("ann", "Rome"), 3: ("eve", "Oslo"), 5: ("again", "Bern"), 6: ("zoe", "Bern")}
    assert rows == expected
    [letter] = DeadLetters(plan.state / "dead_letters").read().to_pylist()
    assert letter["payload"] == b"no frame"
    found = [message.value() for message in kafka.messages(f"{topic}-out")]
    counts: dict[str, int] = {}
    for each in read(apicurio, f"{topic}-out-value", payloads(*found)):
        if each["before"] is not None:
            assert counts.pop(each["before"]["city"]) == each["before"]["users"]
        if each["after"] is not None:
            assert each["after"]["city"] not in counts
            counts[each["after"]["city"]] = each["after"]["users"]
    assert counts == {"Rome": 1, "Oslo": 1, "Bern": 2}
