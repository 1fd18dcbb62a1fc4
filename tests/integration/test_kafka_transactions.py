"""Exactly-once writes to Kafka: transactions, markers and fencing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka_records import Writing, rows, sink, write

from penstock.connectors.kafka import KafkaSink, transactions
from penstock.core.errors import Transient
from servers.kafka import Kafka

DIES = """
import os, sys
from kafka_records import Writing, sink
writing = Writing(sink(sys.argv[1], sys.argv[2], delivery="exactly_once"), int(sys.argv[3]))
writing.write([{"id": 99} for _ in range(1000)])
writing._writer._transaction.producer.flush()
os._exit(9)
"""
"""A process that is killed in the middle of a transaction."""


@pytest.fixture
def topic(kafka: Kafka) -> Iterator[str]:
    topic = kafka.create_topic()
    yield topic
    kafka.delete_topic(topic)


def exact(broker: Kafka, topic: str, **options: Any) -> KafkaSink:
    return sink(broker, topic, delivery="exactly_once", transactional_id=topic, **options)


def ids(broker: Kafka, topic: str) -> list[int]:
    """The records that are committed when no transaction is open."""
    broker.await_visible(topic)
    return [row["id"] for row in rows(broker, topic)]


@pytest.mark.parametrize("same_process", [True, False])
def test_a_batch_is_written_once(kafka: Kafka, topic: str, same_process: bool) -> None:
    writes = exact(kafka, topic)
    client = writes.open() if same_process else None
    for number in (0, 0, 1, 1, 0, 2):
        write(writes, [{"id": number}], number, client=client)
    assert ids(kafka, topic) == [0, 1, 2]


def test_nothing_is_visible_before_the_end(kafka: Kafka, topic: str) -> None:
    writing = Writing(exact(kafka, topic))
    writing.write([{"id": number} for number in range(3)])
    writing._writer._transaction.producer.flush()
    assert kafka.messages(topic, **{"isolation.level": "read_uncommitted"})
    assert rows(kafka, topic) == []
    writing.commit()
    assert ids(kafka, topic) == [0, 1, 2]


def test_of_two_writers_the_older_one_fails(kafka: Kafka, topic: str) -> None:
    old, new = Writing(exact(kafka, topic)), Writing(exact(kafka, topic))
    old.write([{"id": number} for number in range(100)])
    new.write([{"id": 1000}])
    with pytest.raises(Transient) as caught:
        old.commit()
    assert caught.value.code == "fenced" and "transaction_timeout" in (caught.value.hint or "")
    old.abort()
    new.commit()
    assert ids(kafka, topic) == [1000]
    write(exact(kafka, topic), [{"id": 1}], 0)
    assert ids(kafka, topic) == [1000]


def test_a_fenced_client_writes_the_next_batch(kafka: Kafka, topic: str) -> None:
    writes = exact(kafka, topic)
    first, second = writes.open(), writes.open()
    for number in range(6):
        write(writes, [{"id": number}], number, client=[first, second][number % 2])
    write(writes, [{"id": 5}], 5, client=first)
    assert ids(kafka, topic) == [*range(6)]


def test_a_writer_that_is_killed(kafka: Kafka, topic: str) -> None:
    sinks = sink(kafka, topic, delivery="exactly_once")
    write(sinks, [{"id": 0}], 0)
    done = subprocess.run(
        [sys.executable, "-c", DIES, kafka.address, topic, "1"], timeout=60, check=False,
        cwd=Path(__file__).parent, env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 9
    write(sinks, [{"id": 1}], 1)
    assert ids(kafka, topic) == [0, 1]


def test_a_failed_batch_is_retried(kafka: Kafka, topic: str) -> None:
    writes = exact(kafka, topic)
    client = writes.open()
    for _ in range(2):
        failing = Writing(writes, client=client)
        failing.write([{"id": number} for number in range(1000)])
        failing.abort()
    write(writes, [{"id": 0}], client=client)
    write(writes, [{"id": 1}], 1, client=client)
    assert ids(kafka, topic) == [0, 1]


def test_queries_have_markers_of_their_own(kafka: Kafka, topic: str) -> None:
    writes = exact(kafka, topic)
    client = writes.open()
    write(writes, [{"id": 5}], 5, query="query", client=client)
    write(writes, [{"id": 0}], 0, query="replay-1", client=client)
    write(writes, [{"id": 0}], 0, query="replay-1")
    write(writes, [{"id": 5}], 5, query="query", client=client)
    write(writes, [{"id": 6}], 6, query="query")
    write(writes, [{"id": 7}], 0, query="query-after-fresh")
    assert ids(kafka, topic) == [5, 0, 6, 7]


def test_parallel_writers(kafka: Kafka, topic: str) -> None:
    writes = exact(kafka, topic, concurrency=3, key="{id}")
    assert writes.partitioning(pa.schema([("id", pa.int64())])) == (3, ("id",))
    open_ = [Writing(writes, partition=number) for number in range(3)]
    for number, each in enumerate(open_):
        each.write([{"id": number}])
    open_[0].commit()
    open_[2].commit()
    for number in range(3):
        write(writes, [{"id": number}], partition=number)
    assert sorted(ids(kafka, topic)) == [0, 1, 2]


def test_topics_of_columns(kafka: Kafka, topic: str) -> None:
    other = kafka.create_topic()
    writes = sink(kafka, "{topic}", delivery="exactly_once", transactional_id=topic)
    for _ in range(2):
        write(writes, [{"topic": name, "id": 1} for name in (topic, other)])
    assert ids(kafka, topic) == ids(kafka, other) == [1]


def test_a_bad_row_of_a_committed_batch(kafka: Kafka) -> None:
    topic = kafka.create_topic(max_message_bytes=50_000)
    given = [{"id": 1, "text": "x" * 60_000}, {"id": 2, "text": ""}]
    first, again = (write(exact(kafka, topic), given) for _ in range(2))
    assert [each.index for each in first] == [each.index for each in again] == [0]
    assert ids(kafka, topic) == [2]


def test_a_broker_that_is_killed_keeps_the_markers(breakable_kafka: Kafka) -> None:
    broker = breakable_kafka
    topic = broker.create_topic()
    writes = exact(broker, topic)
    client = writes.open()
    write(writes, [{"id": 0}], 0, client=client)
    broker.await_visible(topic)
    broker.kill()
    time.sleep(2)  # the client removes the broker from its metadata
    broker.start()
    for number in (0, 1):
        write(writes, [{"id": number}], number, client=client)
    for number in (1, 2):
        write(writes, [{"id": number}], number)
    assert ids(broker, topic) == [0, 1, 2]


def test_a_coordinator_without_a_response(
    breakable_kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library does not end the call; the writer does, and the next one writes."""
    broker = breakable_kafka
    topic = broker.create_topic()
    writes = exact(broker, topic)
    client = writes.open()
    write(writes, [{"id": 0}], 0, client=client)
    monkeypatch.setattr(transactions, "RESPONSE_TIMEOUT", 1.0)
    broker.pause()
    with pytest.raises(Transient) as caught:
        Writing(writes, 1, client=client).write([{"id": 1}])
    assert caught.value.code == "unreachable"
    broker.restore()
    monkeypatch.undo()
    write(writes, [{"id": 1}], 1, client=client)
    assert ids(broker, topic) == [0, 1]


def test_a_transaction_that_lasts_too_long(kafka: Kafka, topic: str) -> None:
    writes = exact(kafka, topic, transaction_timeout="1s")
    writing = Writing(writes)
    writing.write([{"id": 0}])
    writing._writer._transaction.producer.flush()
    kafka.await_visible(topic)
    with pytest.raises(Transient) as caught:
        writing.commit()
    assert caught.value.code == "fenced"
    writing.abort()
    write(writes, [{"id": 0}])
    assert ids(kafka, topic) == [0]


def test_the_name_of_transactions(kafka: Kafka, topic: str) -> None:
    write(sink(kafka, topic, delivery="exactly_once"), [{"id": 0}], query="q")
    write(exact(kafka, topic), [{"id": 1}], query="q")
    groups = {each.group_id for each in kafka.admin.list_consumer_groups().result(30).valid}
    assert {"penstock.tests.out.0.q", f"{topic}.0.q"} <= groups
    assert ids(kafka, topic) == [0, 1]
