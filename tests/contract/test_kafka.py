from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.connectors.kafka import KafkaSink, KafkaSource, client
from penstock.testing.contract import SinkContract, SourceContract
from servers.kafka import Kafka
from servers.kafka_security import PASSWORD, USER


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    """A broker with passwords that the contract may stop, kill and pause."""
    with Kafka(security="sasl_plaintext") as broker:
        yield broker


def login(password: str) -> dict[str, Any]:
    return {"sasl": {"mechanism": "PLAIN", "username": USER, "password": password}}


class OnKafka:
    """What both contracts need."""

    wrong_secret = login("wrong")

    @pytest.fixture
    def server(self, broker: Kafka) -> Kafka:
        return broker

    @pytest.fixture
    def topic(self, broker: Kafka) -> str:
        return broker.create_topic(max_message_bytes=20_000_000)

    @pytest.fixture
    def options(self, broker: Kafka, topic: str) -> dict[str, Any]:
        return {"brokers": broker.address, "topic": topic, **login(PASSWORD)}

    def test_a_server_that_does_not_answer_is_given_up(
        self, options: dict[str, Any], server: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "ANSWER_SECONDS", 3.0)
        super().test_a_server_that_does_not_answer_is_given_up(options, server)  # type: ignore[misc]


class TestKafkaSource(OnKafka, SourceContract):
    component = KafkaSource
    limited = {"max_records": 1}

    @pytest.fixture
    def put(self, broker: Kafka, topic: str) -> Any:
        producer = Producer({**broker.client(), "message.max.bytes": 20_000_000})

        def put(rows: Any, schema: Any) -> None:
            for payload in self.encoded(rows, schema):
                producer.produce(topic, payload)
            assert producer.flush(30) == 0

        return put


class TestKafkaSink(OnKafka, SinkContract):
    component = KafkaSink
    variant = "delivery: at_least_once"

    @pytest.fixture
    def rows(self, broker: Kafka, topic: str) -> Any:
        return lambda schema: self.decoded([m.value() for m in broker.messages(topic)], schema)

    @pytest.fixture
    def table(self, broker: Kafka, topic: str) -> Any:
        def table(schema: Any) -> Any:
            latest = {message.key(): message.value() for message in broker.messages(topic)}
            return self.decoded([*latest.values()], schema)

        return table


class TestKafkaSinkExactlyOnce(TestKafkaSink):
    whole = True
    variant = "delivery: exactly_once"

    @pytest.fixture
    def options(self, broker: Kafka, topic: str) -> dict[str, Any]:
        given = {"brokers": broker.address, "topic": topic, **login(PASSWORD)}
        return {**given, "delivery": "exactly_once", "transactional_id": topic}

    @pytest.fixture
    def server(self, broker: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch) -> Kafka:
        """A single broker that is killed while it ends a transaction may never end it: a fault of

        Kafka 4.3, which takes partitions for deleted whose leader has just been started.
        """

        def kill() -> None:
            broker.await_visible(topic)
            Kafka.kill(broker)

        monkeypatch.setattr(broker, "kill", kill)
        return broker
