"""Pipelines between Kafka topics whose schemas are in a registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka_records import put
from pyspark.sql import SparkSession
from registry_formats import optional, payloads, read, record, written

from penstock import app
from penstock.app import RunOptions
from penstock.core.errors import PenstockError
from penstock.runtime.connectivity import check_connectivity
from servers.apicurio import Apicurio
from servers.kafka import Kafka

PIPELINE = """\
name: registered
runtime: {trigger: asap}
sources:
  orders:
    type: kafka
    brokers: BROKERS
    topic: TOPIC
    format: {type: KIND, registry: {url: REGISTRY}}
transforms:
  some:
    type: sql
    sql: SELECT * FROM orders
sinks:
  out:
    type: kafka
    from: some
    brokers: BROKERS
    topic: TOPIC-out
    format: {type: KIND, registry: {url: REGISTRY}OPTIONS}
"""
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string name = 2; }'


class Place:
    """A topic with its copy, and a directory with the pipeline between them."""

    def __init__(self, root: Path, broker: Kafka, apicurio: Apicurio, spark: SparkSession) -> None:
        self.root, self.broker, self.apicurio, self.spark = root, broker, apicurio, spark
        self.topic = broker.create_topic()
        self.copy = broker.create_topic(f"{self.topic}-out")
        self.subject = f"{self.topic}-value"
        self.file = root / "pipeline.yaml"

    def run(self, kind: str, options: str = "", **changes: str) -> list[str]:
        """Runs until all is copied; returns the errors' codes."""
        self.write(kind, options, **changes)
        plan = app.plan([self.file])
        spark = self.spark.newSession()
        try:
            outcome = app.run(plan, spark=spark, options=RunOptions(until="caught_up"))
        except PenstockError as error:
            return [error.code]
        return [error.code for error in outcome.errors.values()]

    def write(self, kind: str, options: str = "", **changes: str) -> None:
        """Writes the pipeline's file."""
        text = PIPELINE.replace("BROKERS", self.broker.address).replace("TOPIC", self.topic)
        text = text.replace("KIND", kind).replace("REGISTRY", self.apicurio.url)
        text = text.replace("OPTIONS", options)
        for before, after in changes.items():
            text = text.replace(before, after)
        self.file.write_text(text)

    def copied(self) -> list[bytes]:
        return [message.value() for message in self.broker.messages(self.copy)]


@pytest.fixture
def place(tmp_path: Path, kafka: Kafka, apicurio: Apicurio, penstock_spark: SparkSession) -> Place:
    return Place(tmp_path, kafka, apicurio, penstock_spark)


@pytest.mark.spark
def test_avro_evolves_while_columns_stay(place: Place, apicurio: Apicurio) -> None:
    first = written(apicurio, place.subject, record(optional("name")), {"id": 1, "name": "ann"})
    put(place.broker, place.topic, *first, b"no frame")
    assert not place.run("avro")
    later = record(optional("title", aliases=["name"]), optional("more"))
    second = written(apicurio, place.subject, later, {"id": 2, "title": "bob", "more": "x"})
    put(place.broker, place.topic, *second, *first)
    assert not place.run("avro")
    assert read(apicurio, f"{place.copy}-value", payloads(*place.copied())) == [
        {"id": 1, "name": "ann"}, {"id": 2, "name": None}, {"id": 1, "name": "ann"},
    ]  # fmt: skip
    (state,) = (place.root / ".penstock").glob("*/schemas.json")
    pinned = json.loads(state.read_text())["orders"]
    assert pinned["columns"] == {"id": "int64", "name": "string"}
    oldest = apicurio.schemas(place.subject)[0]
    assert pinned["registry"] == {"id": oldest.schema_id, "version": 1}


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["json", "protobuf"])
def test_the_other_kinds(place: Place, apicurio: Apicurio, kind: str) -> None:
    schema: Any = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    }
    options, body = "", b'{"id":1,"name":"ann"}'
    if kind == "protobuf":
        schema, body = PROTO, b"\x00\x08\x01\x12\x03ann"
        (place.root / "order.proto").write_text(PROTO)
        options = ", schema_file: order.proto, message: shop.Order"
    id_ = apicurio.register(place.subject, schema, kind.upper())
    put(place.broker, place.topic, b"\0" + id_.to_bytes(4) + body)
    assert not place.run(kind, options)
    (kept,) = apicurio.schemas(f"{place.copy}-value")
    assert place.copied() == [b"\0" + kept.schema_id.to_bytes(4) + body]


@pytest.mark.spark
def test_an_incompatible_sink_writes_nothing(place: Place, apicurio: Apicurio) -> None:
    out = f"{place.copy}-value"
    apicurio.register(out, record({"name": "other", "type": "int"}, name="row"))
    apicurio.client.set_compatibility(out, "FULL")
    found = written(apicurio, place.subject, record(optional("name")), {"id": 1, "name": "ann"})
    put(place.broker, place.topic, *found)
    assert place.run("avro") == ["incompatible-schema"]
    assert not place.copied()


def test_check_reaches_the_registry(place: Place, apicurio: Apicurio) -> None:
    place.write("avro")
    assert not check_connectivity(app.plan([place.file]))
    place.write("avro", **{apicurio.url: "http://127.0.0.1:1"})
    errors = check_connectivity(app.plan([place.file]))
    assert [error.code for error in errors] == ["unreachable"] * 2


def test_the_subject_of_a_pattern_has_to_be_said(place: Place) -> None:
    assert place.run("avro", **{f"topic: {place.topic}\n": f"pattern: {place.topic}\n"}) == [
        "missing-option"
    ]
