"""Reads of unchanged topics: kinds of records and start positions."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from kafka_records import (
    Reading,
    numbered,
    put,
    source,
    transaction,
)
from pydantic import ValidationError

from penstock.core.errors import Permanent
from servers.kafka import Kafka, count_clients


def test_partitions_are_read_in_parallel(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=4)
    for number in range(4):
        put(kafka, topic, *numbered(0, 3000), partition=number)
    reading = Reading(source(kafka, topic))
    found = reading.batch()
    assert reading.tasks == 4
    assert [row["payload"] for row in found] == [*numbered(0, 3000)] * 4
    assert [row["offset"] for row in found] == [*range(3000)] * 4


def test_small_ranges_are_read_by_one_task(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=8)
    for number in range(8):
        put(kafka, topic, b"%d" % number, partition=number)
    reading = Reading(source(kafka, topic))
    assert reading.values() == [b"%d" % number for number in range(8)]
    assert reading.tasks == 1
    put(kafka, topic, b"more", partition=3)
    assert reading.values() == [b"more"]


def test_partitions_grow_during_a_read(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=3)
    total = 20_000

    def feed() -> None:
        producer = Producer({**kafka.client(), "linger.ms": 1, "log_level": 0})
        for number in range(total):
            producer.produce(topic, b"%d" % number, partition=number % 7 % 3)
            if number % 20 == 0:
                producer.flush(30)
        assert producer.flush(30) == 0

    feeding = ThreadPoolExecutor(1).submit(feed)
    reading = Reading(source(kafka, topic))
    found: list[int] = []
    while len(found) < total:
        running = not feeding.done()
        batch = reading.values()
        assert batch or running, f"only {len(found)} were read"
        found += [int(value or b"") for value in batch]
    feeding.result()
    assert sorted(found) == [*range(total)]


def test_metadata_of_a_record(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=2, retention_ms=-1)
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    headers = [("source", b"shop"), ("source", None), ("empty", b"")]
    put(kafka, topic, b"full", key=b"\xff\x00", headers=headers, partition=1,
        timestamp=round(at.timestamp() * 1000))  # fmt: skip
    put(kafka, topic, b"bare", partition=0)
    bare, full = Reading(source(kafka, topic)).batch()
    assert full == {
        "payload": b"full", "origin": f"{topic}:1", "position": 0,
        "topic": topic, "partition": 1, "offset": 0, "timestamp": at, "key": b"\xff\x00",
        "headers": [{"key": key, "value": value} for key, value in headers],
    }  # fmt: skip
    assert (bare["key"], bare["headers"]) == (None, None)
    assert bare["timestamp"] is not None


def test_records_without_value(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, b"1", None, b"", key=b"k")
    assert Reading(source(kafka, topic)).values() == [b"1", None, b""]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records(kafka: Kafka, codec: str) -> None:
    topic = kafka.create_topic()
    values = list(numbered(0, 3000))
    put(kafka, topic, *values, properties={"compression.type": codec, "linger.ms": 50})
    assert Reading(source(kafka, topic)).values() == values


def test_records_of_ten_megabytes(kafka: Kafka) -> None:
    topic = kafka.create_topic(max_message_bytes=12_000_000)
    values = [bytes([number]) * 10_000_000 for number in range(3)]
    put(kafka, topic, *values)
    assert Reading(source(kafka, topic)).values() == values


@pytest.mark.parametrize("isolation", ["committed", "uncommitted"])
def test_transactions(kafka: Kafka, isolation: str) -> None:
    topic = kafka.create_topic()
    transaction(kafka, topic, b"1", b"2")
    transaction(kafka, topic, b"aborted", commit=False)
    reading = Reading(source(kafka, topic, isolation=isolation))
    aborted = [b"aborted"] * (isolation == "uncommitted")
    assert reading.values() == [b"1", b"2", *aborted]
    transaction(kafka, topic, b"3")
    assert reading.values() == [b"3"]
    transaction(kafka, topic, b"aborted", commit=False)
    assert reading.values() == aborted
    put(kafka, topic, b"4")
    assert reading.values() == [b"4"]


def test_ranges_that_end_within_control_records(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    for number in range(4):
        transaction(kafka, topic, b"%d" % number)
        transaction(kafka, topic, b"aborted", commit=False)
    reading = Reading(source(kafka, topic, max_records=1))
    found = [value for _ in range(16) for value in reading.values()]
    assert found == [b"0", b"1", b"2", b"3"]
    assert reading.plan() == reading.at


def test_an_open_transaction_is_not_read(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    producer = Producer({**kafka.client(), "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"1")
    producer.flush(30)
    put(kafka, topic, b"2")
    reading = Reading(source(kafka, topic))
    assert reading.values() == []
    producer.commit_transaction(30)
    kafka.await_visible(topic)
    assert reading.values() == [b"1", b"2"]


def test_a_compacted_topic_has_gaps(kafka: Kafka) -> None:
    topic = kafka.create_topic(
        cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, segment_ms=100
    )
    reading = Reading(source(kafka, topic))
    for number in range(100):
        put(kafka, topic, b"%d" % number, key=b"%d" % (number % 3))
    until = time.monotonic() + 60
    while len(kafka.messages(topic)) > 90 and time.monotonic() < until:
        put(kafka, topic, b"100", key=b"3")
    found = reading.batch()
    assert 0 < len(found) <= 90
    assert [int(r["payload"]) for r in found if r["offset"] < 100] == [
        row["offset"] for row in found if row["offset"] < 100
    ]
    put(kafka, topic, b"more", key=b"4")
    assert reading.values() == [b"more"]


class TestWhereToStart:
    @pytest.fixture
    def topic(self, kafka: Kafka) -> str:
        topic = kafka.create_topic(partitions=2, retention_ms=-1)
        for number in range(2):
            for at in range(4):
                put(kafka, topic, b"%d" % at, partition=number, timestamp=1000 + 1000 * at)
        return topic

    def test_at_the_beginning(self, kafka: Kafka, topic: str) -> None:
        assert Reading(source(kafka, topic)).values() == [b"0", b"1", b"2", b"3"] * 2

    def test_at_the_end(self, kafka: Kafka, topic: str) -> None:
        reading = Reading(source(kafka, topic, start="latest"))
        assert reading.values() == []
        put(kafka, topic, b"4", partition=1)
        assert reading.values() == [b"4"]

    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            ({}, [b"0", b"1", b"2", b"3", b"3"]),
            ({"reset": "earliest"}, [b"0", b"1", b"2", b"3", b"3"]),
            ({"reset": "latest"}, [b"3"]),
        ],
    )
    def test_at_the_offsets_of_a_group(
        self, kafka: Kafka, topic: str, more: dict[str, str], expected: list[bytes]
    ) -> None:
        at = [TopicPartition(topic, 1, 3)]
        group = f"group-{topic}"
        asked = kafka.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, at)])
        asked[group].result(30)
        reading = Reading(source(kafka, topic, start="committed", group=group, **more))
        assert reading.values() == expected
        put(kafka, topic, b"4", partition=0)
        assert reading.values() == [b"4"]

    def test_at_a_time(self, kafka: Kafka, topic: str) -> None:
        start = {"timestamp": "1970-01-01T00:00:02.500Z"}
        assert Reading(source(kafka, topic, start=start)).values() == [b"2", b"3"] * 2
        later = {"timestamp": "2030-01-01T00:00:00"}
        assert Reading(source(kafka, topic, start=later)).values() == []

    def test_at_offsets(self, kafka: Kafka, topic: str) -> None:
        start = {"offsets": {topic: {1: 3}}}
        reading = Reading(source(kafka, topic, start=start))
        assert reading.values() == [b"0", b"1", b"2", b"3", b"3"]

    @pytest.mark.parametrize(("number", "at"), [(2, 0), (0, 5)])
    def test_at_unknown_offsets(self, kafka: Kafka, topic: str, number: int, at: int) -> None:
        with pytest.raises(Permanent) as caught:
            source(kafka, topic, start={"offsets": {topic: {number: at}}}).initial_offset()
        assert f"{topic} [{number}]" in caught.value.message
        assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reset": "latest"}, "reset requires start: committed"),
        (
            {"properties": {"auto.offset.reset": "latest"}},
            "auto.offset.reset is set by the option reset",
        ),
    ],
)
def test_a_reset_without_start_committed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        source("nobody:1", "t", **options)


def test_a_limited_batch_has_fair_shares(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=3)
    put(kafka, topic, *numbered(0, 60), partition=0)
    put(kafka, topic, *numbered(0, 30), partition=1)
    put(kafka, topic, b"0", partition=2)
    reading = Reading(source(kafka, topic, max_records=10))
    first = [row["partition"] for row in reading.batch()]
    assert (first.count(0), first.count(1)) == (7, 3)
    sizes = []
    while batch := reading.batch():
        sizes.append(len(batch))
    assert sizes == [10] * 8 + [1]


def test_offsets_are_committed_to_a_group(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=2)
    put(kafka, topic, *numbered(0, 5), partition=1)
    reading = Reading(source(kafka, topic))
    start = reading.at
    reading.batch()
    assert reading.source.lag(start, reading.at) == 5
    reading.source.commit(reading.at)
    assert kafka.committed("penstock.tests.in", topic) == {0: 0, 1: 5}
    put(kafka, topic, *numbered(0, 3), partition=0)
    assert reading.source.lag(reading.at, reading.source.latest_offset(reading.at)) == 3


def test_the_first_group_of_a_cluster(own_kafka: Any) -> None:
    broker = own_kafka()
    topic = broker.create_topic()
    put(broker, topic, b"1")
    reading = Reading(source(broker, topic, start="committed"))
    assert reading.values() == [b"1"]
    reading.source.commit(reading.at)
    assert broker.committed("penstock.tests.in", topic) == {0: 1}


def test_a_sample_is_taken_from_the_beginning(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=2)
    put(kafka, topic, *numbered(0, 50), partition=1)
    assert source(kafka, topic).sample(10).to_pylist() == [*numbered(0, 10)]


def test_close_frees_the_clients(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    put(kafka, topic, b"1")
    before = count_clients()
    made = source(kafka, topic)
    made.commit(made.latest_offset(made.initial_offset()))
    assert count_clients() > before
    made.close()
    assert count_clients() == before
