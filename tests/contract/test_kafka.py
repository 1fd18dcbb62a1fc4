from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.connectors.kafka import KafkaSink, KafkaSource, client
from penstock.testing.contract import SinkContract, SourceContract
from servers.kafka import Kafka
from servers.kafka_security import PASSWORD, USER, Listener


@pytest.fixture
def broker(breakable_kafka: Kafka) -> Listener:
    """Returns a broker with SASL that the contract may stop, kill and pause."""
    return breakable_kafka.over("sasl_plaintext")


def login(password: str) -> dict[str, Any]:
    return {"auth": {"mechanism": "PLAIN", "username": USER, "password": password}}


class OnKafka:
    """Fixtures of both contracts."""

    wrong_credentials = login("wrong")

    @pytest.fixture
    def server(self, broker: Listener) -> Listener:
        return broker

    @pytest.fixture
    def topic(self, broker: Listener) -> str:
        return broker.create_topic(max_message_bytes=20_000_000)

    @pytest.fixture
    def options(self, broker: Listener, topic: str) -> dict[str, Any]:
        return {"brokers": broker.address, "topic": topic, **login(PASSWORD)}

    def test_check_of_paused_server_times_out(
        self, options: dict[str, Any], server: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "RESPONSE_TIMEOUT", 3.0)
        super().test_check_of_paused_server_times_out(options, server)  # type: ignore[misc]


class TestKafkaSource(OnKafka, SourceContract):
    component = KafkaSource
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def put(self, broker: Listener, topic: str) -> Any:
        producer = Producer({**broker.client(), "message.max.bytes": 20_000_000})

        def put(rows: Any, schema: Any) -> None:
            for payload in self.encode(rows, schema):
                producer.produce(topic, payload)
            assert producer.flush(30) == 0

        return put


class TestKafkaSink(OnKafka, SinkContract):
    component = KafkaSink
    variant = "delivery: at_least_once"
    max_buffered_megabytes = 100

    @pytest.fixture
    def rows(self, broker: Listener, topic: str) -> Any:
        return lambda schema: self.decode([m.value() for m in broker.messages(topic)], schema)

    @pytest.fixture
    def table(self, broker: Listener, topic: str) -> Any:
        def table(schema: Any) -> Any:
            latest = {message.key(): message.value() for message in broker.messages(topic)}
            return self.decode([value for value in latest.values() if value is not None], schema)

        return table


class TestKafkaSinkExactlyOnce(TestKafkaSink):
    transport = "transactions"
    variant = "delivery: exactly_once"

    @pytest.fixture
    def options(self, broker: Listener, topic: str) -> dict[str, Any]:
        given = {"brokers": broker.address, "topic": topic, **login(PASSWORD)}
        return {**given, "delivery": "exactly_once", "transactional_id": topic}

    @pytest.fixture
    def server(self, broker: Listener, topic: str, monkeypatch: pytest.MonkeyPatch) -> Listener:
        """Returns a broker that is killed only after the end of its transactions.

        After a kill during the end of a transaction, a single broker of Kafka 4.3 may treat the
        partitions as deleted and never end the transaction.
        """

        def kill() -> None:
            broker.await_visible(topic)
            broker.broker.kill()

        monkeypatch.setattr(broker, "kill", kill)
        return broker
