"""The Kafka broker that tests start."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from servers.certificates import Authority
from servers.kafka_security import Listener, Mechanism
from servers.server import free_port

QUIET = {"log_level": 0}
TESTS = Path(__file__).parents[1]


def put(client: dict[str, Any], topic: str, *values: bytes, **options: Any) -> None:
    producer = Producer({**client, **QUIET, "message.max.bytes": 20 << 20, **options})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def held(client: dict[str, Any], topic: str, start: int, count: int) -> list[bytes]:
    """The `count` values of partition 0 from an offset on."""
    consumer = Consumer({**client, **QUIET, "group.id": "tests"})
    consumer.assign([TopicPartition(topic, 0, start)])
    found = consumer.consume(count, 60)
    consumer.close()
    return [message.value() for message in found]


def asks(client: dict[str, Any], seconds: float = 30) -> set[str]:
    """The topics, as a client sees them."""
    return set(AdminClient({**client, **QUIET}).list_topics(timeout=seconds).topics)


def is_unreachable(client: dict[str, Any]) -> bool:
    """Whether a client that does not wait long gets no answer."""
    with pytest.raises(KafkaException):
        asks(client, seconds=2)
    return True


def check_error(client: dict[str, Any], code: int) -> None:
    """Checks that the client reports the error; a lost connection may be reported before it."""
    codes: list[int] = []
    admin = AdminClient({**client, **QUIET, "error_cb": lambda error: codes.append(error.code())})
    for _ in range(300):
        admin.poll(0.1)
        if code in codes:
            return
    raise AssertionError(f"the client reported {codes}")


class TestBroker:
    def test_gives_back_what_it_took(self, kafka):
        topic = kafka.create_topic()
        put(kafka.client(), topic, b"a", b"b")
        assert held(kafka.client(), topic, 0, 2) == [b"a", b"b"]

    def test_takes_a_message_of_16_mb(self, kafka):
        topic = kafka.create_topic()
        put(kafka.client(), topic, bytes(16 << 20))
        assert [len(value) for value in held(kafka.client(), topic, 0, 1)] == [16 << 20]

    def test_does_transactions(self, kafka):
        topic = kafka.create_topic()
        producer = Producer({**kafka.client(), **QUIET, "transactional.id": topic})
        producer.init_transactions(60)
        for value, end in {
            b"no": producer.abort_transaction,
            b"yes": producer.commit_transaction,
        }.items():
            producer.begin_transaction()
            producer.produce(topic, value)
            end(60)
        assert held(kafka.client(), topic, 0, 1) == [b"yes"]

    def test_changes_its_topics(self, kafka):
        topic = kafka.create_topic(partitions=2, retention_ms=60_000)
        kafka.add_partitions(topic, 3)
        assert len(kafka.admin.list_topics(topic).topics[topic].partitions) == 3
        put(kafka.client(), topic, *[b"x"] * 5, partitioner="consistent")
        kafka.delete_topic(topic)
        assert topic not in asks(kafka.client())

    def test_cuts_off_the_start_of_a_partition(self, kafka):
        topic = kafka.create_topic()
        put(kafka.client(), topic, b"a", b"b", b"c")
        kafka.delete_records(topic, {0: 2})
        consumer = Consumer({**kafka.client(), "group.id": "tests"})
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (2, 3)
        consumer.close()


class TestOwnBroker:
    def test_keeps_its_records_when_killed_and_answers_again_when_paused(self, breakable_kafka):
        kafka = breakable_kafka
        topic = kafka.create_topic()
        put(kafka.client(), topic, b"before")
        kafka.kill()
        assert is_unreachable(kafka.client())
        kafka.start()
        put(kafka.client(), topic, b"after")
        assert held(kafka.client(), topic, 0, 2) == [b"before", b"after"]
        kafka.pause()
        assert is_unreachable(kafka.client())
        kafka.resume()
        put(kafka.client(), topic, b"resumed")
        assert held(kafka.client(), topic, 2, 1) == [b"resumed"]

    def test_is_another_than_the_shared_one(self, kafka, breakable_kafka):
        topic = breakable_kafka.create_topic()
        assert topic in asks(breakable_kafka.client())
        assert topic not in asks(kafka.client())


@pytest.fixture(params=["sasl_plaintext", "sasl_ssl"])
def guarded(request, kafka) -> Listener:
    return kafka.over(request.param)


class TestSecurity:
    @pytest.mark.parametrize("mechanism", get_args(Mechanism))
    def test_lets_in_who_knows_the_password(self, guarded, mechanism):
        topic = guarded.create_topic()
        put(guarded.client(mechanism), topic, b"value")
        assert held(guarded.client(mechanism), topic, 0, 1) == [b"value"]
        wrong = guarded.client(mechanism, password="wrong")
        check_error(wrong, KafkaError._AUTHENTICATION)

    def test_asks_for_the_password(self, guarded):
        assert is_unreachable({"bootstrap.servers": guarded.address})

    def test_shows_a_certificate_of_its_authority(self, kafka, tmp_path):
        encrypted = kafka.over("ssl")
        topic = kafka.create_topic()
        put(encrypted.client(), topic, b"value")
        assert held(encrypted.client(), topic, 0, 1) == [b"value"]
        other = {"ssl.ca.location": str(Authority(tmp_path).root)}
        check_error(encrypted.client() | other, KafkaError._SSL)


class TestWord:
    def test_runs_a_broker_until_a_signal(self):
        port = free_port()
        command = [sys.executable, "-m", "servers", "kafka", "--port", str(port)]
        with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as word:
            assert word.stdout
            assert f"127.0.0.1:{port}" in word.stdout.readline()
            assert "Ctrl-C" in word.stdout.readline()
            asks({"bootstrap.servers": f"127.0.0.1:{port}"})
            word.send_signal(signal.SIGINT)
            assert word.wait(60) == 0
        assert is_unreachable({"bootstrap.servers": f"127.0.0.1:{port}"})

    @pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
    def test_runs_a_server_until_a_signal(self, end):
        script = (
            "from servers.__main__ import _run; from servers.web import Web; _run(0, Web, 'ready')"
        )
        command = [sys.executable, "-c", script]
        with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as word:
            assert word.stdout
            assert word.stdout.readline() == "ready\n"
            word.send_signal(end)
            assert word.wait(60) == 0

    def test_says_that_a_port_is_taken(self, kafka):
        command = [sys.executable, "-m", "servers", "kafka", "--port", str(kafka.port)]
        word = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
        assert word.returncode == 1
        assert f"port {kafka.port} is not available" in word.stderr
        assert "--port" in word.stderr

    def test_lists_the_servers(self):
        command = [sys.executable, "-m", "servers"]
        assert "kafka" in subprocess.run(command, cwd=TESTS, capture_output=True, text=True).stdout
