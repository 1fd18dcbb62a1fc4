"""Kafka that is down, crashes, or does not respond."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from kafka_records import Reading, Writing, numbered, put, rows, sink, source, write

from penstock.connectors.kafka import client, discovery, reader
from penstock.connectors.kafka.client import Admin
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.core.error_report import format_error
from penstock.core.errors import Transient
from penstock.runtime.retry import restart_policy
from penstock.spec.runtime_models import Restart
from servers.kafka import Kafka
from servers.server import free_port

SECONDS_TO_NOTICE = 20
RESPONSE_TIMEOUT = 4.0
PAUSE = 8.0
"""Longer than clients wait for an answer."""
WAYS = ["at_least_once", "exactly_once"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients wait for a shorter time."""
    monkeypatch.setattr(client, "DISCONNECTED_TIMEOUT", 1.0)
    for module in (client, reader, discovery):
        monkeypatch.setattr(module, "RESPONSE_TIMEOUT", RESPONSE_TIMEOUT)


def unreachable(act: Any) -> None:
    """Asserts that an error is reported quickly and with a hint."""
    began = time.monotonic()
    with pytest.raises(Transient) as caught:
        act()
    assert time.monotonic() - began < SECONDS_TO_NOTICE
    assert caught.value.code == "unreachable"
    assert "brokers are running" in format_error(caught.value)


def test_a_broker_that_is_down() -> None:
    address = f"127.0.0.1:{free_port()}"
    unreachable(source(address, "t").check)
    unreachable(source(address, "t").initial_offset)
    unreachable(sink(address, "t").check)
    unreachable(sink(address, "t", create=True).recover)
    unreachable(lambda: write(sink(address, "t"), [{"id": 1}]))
    unreachable(lambda: write(sink(address, "t", delivery="exactly_once"), [{"id": 1}]))


def test_a_client_is_replaced_after_a_timeout() -> None:
    admin = Admin(ConnectionConfig(brokers=f"127.0.0.1:{free_port()}"))
    before, asked = admin.client, set()

    def look(timeout: float) -> object:
        asked.add(admin.client)
        return admin.client.list_topics(timeout=timeout)

    unreachable(lambda: admin.request("look", look))
    assert asked == {before}
    assert admin.client is not before


def test_an_unknown_host() -> None:
    with pytest.raises(Transient) as caught:
        source("nowhere.invalid:9092", "t").check()
    assert "nowhere.invalid" in format_error(caught.value)


def retried(act: Any) -> Any:
    """Returns the result of an action, retried as a query is restarted."""
    policy = restart_policy(Restart(), endless=False)
    assert policy.attempts is not None
    for failures in range(1, policy.attempts + 1):
        try:
            return act()
        except Transient:
            time.sleep(policy.delay(failures))
    return act()


def test_a_broker_that_dies_while_it_is_read(breakable_kafka: Kafka) -> None:
    broker = breakable_kafka
    topic = broker.create_topic(partitions=2)
    for partition in range(2):
        put(broker, topic, *numbered(0, 20_000), partition=partition)
    reader = Reading(source(broker, topic, max_records=10_000))
    first = reader.batch()
    end = reader.plan()
    tasks = reader.source.partitions(reader.at, end)
    broker.kill()
    unreachable(reader.plan)
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(retried, lambda: reader.batch(end))
        broker.start()
        found = [*first, *again.result()]
    assert tasks
    while batch := retried(reader.batch):
        found += batch
    assert sorted((row["partition"], row["offset"]) for row in found) == [
        (partition, offset) for partition in range(2) for offset in range(20_000)
    ]
    reader.source.commit(reader.at)


@pytest.mark.parametrize("delivery", WAYS)
def test_a_broker_that_dies_while_it_is_written_to(breakable_kafka: Kafka, delivery: str) -> None:
    broker = breakable_kafka
    topic = broker.create_topic()
    named = {"transactional_id": topic} if delivery == "exactly_once" else {}
    writes = sink(broker, topic, delivery=delivery, **named)
    write(writes, [{"id": 0}])
    writing = Writing(writes, 1)
    writing.write([{"id": number} for number in range(1, 1000)])
    broker.kill()
    broker.start()

    def again() -> None:
        write(writes, [{"id": number} for number in range(1, 1000)], 1)

    try:
        writing.commit()
    except Transient:
        writing.abort()
        retried(again)
    if delivery == "exactly_once":
        retried(again)
        assert [row["id"] for row in rows(broker, topic)] == [*range(1000)]
    else:
        assert {row["id"] for row in rows(broker, topic)} == {*range(1000)}


def test_a_broker_that_is_paused_for_longer_than_clients_wait(breakable_kafka: Kafka) -> None:
    """All of it at once, since it takes its time."""
    broker = breakable_kafka
    read, written, exact = (broker.create_topic() for _ in range(3))
    put(broker, read, *numbered(0, 1000))
    reader = Reading(source(broker, read))
    end = reader.plan()
    ways = {written: "at_least_once", exact: "exactly_once"}
    open_ = {topic: Writing(sink(broker, topic, delivery=way)) for topic, way in ways.items()}
    for writing in open_.values():
        writing.write([{"id": number} for number in range(1000)])
    broker.pause()
    with ThreadPoolExecutor(4) as pool:
        records: Future[Any] = pool.submit(retried, lambda: reader.batch(end))
        commits = [pool.submit(writing.commit) for writing in open_.values()]
        latest = pool.submit(retried, lambda: source(broker, read).initial_offset())
        time.sleep(PAUSE)
        broker.resume()
        assert len(records.result()) == 1000
        assert latest.result() is not None
        for topic, commit in zip(open_, commits, strict=True):
            if isinstance(commit.exception(), Transient):
                open_[topic].abort()
                retried(lambda t=topic: write(
                    sink(broker, t, delivery=ways[t]), [{"id": n} for n in range(1000)]
                ))  # fmt: skip
            else:
                commit.result()
    assert {row["id"] for row in rows(broker, written)} == {*range(1000)}
    assert [row["id"] for row in rows(broker, exact)] == [*range(1000)]
