"""Reads of changing topics: new partitions, deleted records, recreated topics."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from kafka_records import Reading, numbered, put, source

from penstock.connectors.kafka import reader
from penstock.core.errors import Permanent, Transient
from penstock.discovery import topic_names
from penstock.sdk import Read
from servers.kafka import Kafka

Policy = pytest.mark.parametrize("policy", ["fail", "continue"])


def test_a_partition_that_is_added(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, b"1")
    reading = Reading(source(kafka, topic, start="latest"))
    assert reading.values() == []
    kafka.add_partitions(topic, 3)
    put(kafka, topic, b"2", partition=2)
    assert reading.values() == [b"2"]


def test_partitions_are_discovered_at_intervals(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    reading = Reading(source(kafka, topic, discovery_interval="1 hour"))
    kafka.add_partitions(topic, 2)
    put(kafka, topic, b"new", partition=1)
    put(kafka, topic, b"old", partition=0)
    assert reading.values() == [b"old"]
    assert Reading(source(kafka, topic), reading.at).values() == [b"new"]


def test_a_pattern_finds_new_topics(kafka: Kafka) -> None:
    prefix = f"shop-{uuid.uuid4().hex[:6]}"
    put(kafka, kafka.create_topic(f"{prefix}.a"), b"a")
    kafka.create_topic(f"x{prefix}.a")
    reading = Reading(source(kafka, pattern=rf"{prefix}\..*", start="latest"))
    assert reading.values() == []
    put(kafka, kafka.create_topic(f"{prefix}.b"), b"b")
    put(kafka, f"x{prefix}.a", b"other")
    put(kafka, f"{prefix}.a", b"more")
    assert reading.values() == [b"more", b"b"]


def test_a_pattern_without_matches(kafka: Kafka) -> None:
    name = f"later-{uuid.uuid4().hex[:6]}"
    reading = Reading(source(kafka, pattern=name))
    assert reading.values() == []
    put(kafka, kafka.create_topic(name), b"1")
    assert reading.values() == [b"1"]


def test_a_limit_ignores_deleted_records_of_a_new_topic(kafka: Kafka) -> None:
    name = f"later-{uuid.uuid4().hex[:6]}"
    reading = Reading(source(kafka, pattern=name, max_records=5))
    put(kafka, kafka.create_topic(name), *numbered(0, 1000))
    kafka.delete_records(name, {0: 990})
    assert reading.values() == [*numbered(990, 995)]


def test_an_unknown_topic(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    with pytest.raises(Permanent) as caught:
        source(kafka, topic[:-1]).check()
    assert caught.value.message == f'cannot find topic "{topic[:-1]}"'
    assert caught.value.hint == f'did you mean "{topic}"?'
    with pytest.raises(Permanent):
        source(kafka, topic[:-1]).initial_offset()


@Policy
def test_a_truncated_log(kafka: Kafka, policy: str) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, *numbered(0, 4))
    reading = Reading(source(kafka, topic, on_data_loss=policy))
    assert len(reading.batch()) == 4
    put(kafka, topic, *numbered(4, 10))
    kafka.delete_records(topic, {0: 8})
    gone = f"offsets 4 to 7 of {topic} [0] were deleted before being read"
    if policy == "fail":
        assert_data_loss(reading, gone)
    else:
        assert reading.values() == [*numbered(8, 10)]
        assert reading.lost == [gone]


def test_a_log_that_is_truncated_before_a_prefetch(kafka: Kafka) -> None:
    """librdkafka stops the partition, as when a pause comes after the request for more."""
    topic = kafka.create_topic()
    put(kafka, topic, *numbered(0, 4))
    reading = Reading(source(kafka, topic, on_data_loss="continue"))
    assert len(reading.batch()) == 4
    put(kafka, topic, *numbered(4, 10))
    kafka.delete_records(topic, {0: 8})

    consumer = reader._pool.get(reading.source._reader_config())._consumer
    consumer.resume([TopicPartition(topic, 0)])
    deadline = time.monotonic() + 30
    errors: set[str] = set()
    while "_AUTO_OFFSET_RESET" not in errors and time.monotonic() < deadline:
        errors |= {each.error().name() for each in consumer.consume(10, 0.1) if each.error()}
    assert "_AUTO_OFFSET_RESET" in errors
    consumer.pause([TopicPartition(topic, 0)])

    assert reading.values() == [*numbered(8, 10)]
    put(kafka, topic, b"more")
    assert reading.values() == [b"more"]


@Policy
def test_a_log_that_is_truncated_after_its_range_was_planned(kafka: Kafka, policy: str) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, *numbered(0, 10))
    reading = Reading(source(kafka, topic, on_data_loss=policy))
    end = reading.plan()
    put(kafka, topic, b"later")
    kafka.delete_records(topic, {0: 11})
    gone = f"offsets 0 to 9 of {topic} [0] were deleted before being read"
    if policy == "fail":
        assert_data_loss(reading, gone, end)
    else:
        assert reading.batch(end) == []
        assert reading.lost == [gone]
        assert reading.values() == []


@Policy
def test_a_log_that_is_truncated_when_a_task_begins(kafka: Kafka, policy: str) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, *numbered(0, 10))
    reading = Reading(source(kafka, topic, on_data_loss=policy))
    end = reading.plan()

    (task,) = reading.source.partitions(reading.at, end)
    kafka.delete_records(topic, {0: 5})
    with pytest.raises(Transient) as caught:
        list(reading.source.read(task, Read()))
    assert f"{topic} [0] from offset 0: the offset was deleted" in caught.value.message
    if policy == "fail":
        assert_data_loss(
            reading, f"offsets 0 to 4 of {topic} [0] were deleted before being read", end
        )
    else:
        assert [row["offset"] for row in reading.batch(end)] == [*range(5, 10)]


@pytest.mark.parametrize("again", [0, 3, 9])
@Policy
def test_a_topic_is_recreated(kafka: Kafka, policy: str, again: int) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, *numbered(0, 5))
    reading = Reading(source(kafka, topic, on_data_loss=policy))
    assert len(reading.batch()) == 5
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    put(kafka, topic, *numbered(0, again))
    if policy == "fail":
        assert_data_loss(reading, f'topic "{topic}" was deleted and created again')
    else:
        assert reading.values() == [*numbered(0, again)]
        assert len(reading.lost) == 1
        put(kafka, topic, b"more")
        assert reading.values() == [b"more"]
        assert len(reading.lost) == 1


@pytest.mark.parametrize("again", [None, 3, 9])
@Policy
def test_a_topic_is_recreated_after_planning(kafka: Kafka, policy: str, again: int | None) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, *numbered(0, 5))
    reading = Reading(source(kafka, topic, on_data_loss=policy))
    end = reading.plan()
    kafka.delete_topic(topic)
    if again is not None:
        kafka.create_topic(topic)
        put(kafka, topic, *numbered(0, again))
    gone = f"offsets 0 to 4 of {topic} [0] were deleted before being read"
    if policy == "fail":
        assert_data_loss(reading, gone, end)
    else:
        assert reading.batch(end) == []
        assert reading.lost == [gone]
        assert reading.values() == [*numbered(0, again or 0)]


@Policy
def test_one_of_several_topics_is_deleted(kafka: Kafka, policy: str) -> None:
    prefix = uuid.uuid4().hex[:6]
    topics = [kafka.create_topic(f"{prefix}.{number}") for number in range(3)]
    for topic in topics:
        put(kafka, topic, b"1")
    options = {"pattern": rf"{prefix}\..*", "on_data_loss": policy}
    reading = Reading(source(kafka, discovery_interval="1 hour", **options))
    assert len(reading.batch()) == 3
    kafka.delete_topic(topics[1])
    if policy == "fail":
        assert_data_loss(reading, f'topic "{topics[1]}" was deleted')
    else:
        for number in range(3):
            put(kafka, topics[0], b"%d" % number)
            put(kafka, topics[2], b"%d" % number)
            assert reading.values() == [b"%d" % number] * 2


def assert_data_loss(reading: Reading, message: str, end: Any = None) -> None:
    """Asserts that reading fails with an error and a hint."""
    with pytest.raises(Permanent) as caught:
        reading.batch(end)
    assert caught.value.message == message
    assert "on_data_loss: continue" in (caught.value.hint or "")


def test_topics_are_discovered(kafka: Kafka) -> None:
    """The names of topics over a connection, without those that are internal."""
    topic = kafka.create_topic()
    option, names = topic_names("kafka", {"brokers": kafka.address})
    assert option == "topic" and topic in names
    assert names == sorted(name for name in names if not name.startswith("__"))
