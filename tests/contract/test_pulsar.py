from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.pulsar import PulsarSink, PulsarSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from servers.pulsar import LARGEST, Pulsar, token


class OnPulsar:
    """What all of them need."""

    wrong_secret = {"token": token() + "wrong"}

    @pytest.fixture
    def server(self, pulsar: Pulsar) -> Pulsar:
        return pulsar

    @pytest.fixture
    def topic(self, pulsar: Pulsar) -> str:
        return pulsar.new_topic()

    @pytest.fixture
    def options(self, pulsar: Pulsar, topic: str) -> dict[str, Any]:
        return {**pulsar.login, "topic": topic}

    def test_a_server_that_does_not_answer_is_given_up(
        self, options: dict[str, Any], server: Any
    ) -> None:
        options["timeout"] = "3s"
        super().test_a_server_that_does_not_answer_is_given_up(options, server)  # type: ignore[misc]


class TestPulsarTopic(OnPulsar, SourceContract):
    component = PulsarSource
    variant = "topic: orders"
    limited = {"max_records": 1}

    @pytest.fixture
    def put(self, pulsar: Pulsar, topic: str) -> Any:
        return lambda rows, schema: pulsar.send(topic, self.encoded(rows, schema))

    @pytest.fixture
    def put_together(self, pulsar: Pulsar, topic: str) -> Any:
        return lambda rows, schema: pulsar.send_together(topic, self.encoded(rows, schema))


class TestPulsarSubscription(OnPulsar, ReceivingContract):
    component = PulsarSource
    variant = "subscription: workers, subscription_type: shared"

    @pytest.fixture
    def options(self, pulsar: Pulsar, topic: str) -> dict[str, Any]:
        shared = {"subscription": "workers", "subscription_type": "shared"}
        return {**pulsar.login, "topic": topic, **shared}

    @pytest.fixture
    def send(self, pulsar: Pulsar, topic: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: pulsar.send(topic, payloads)


class TestPulsarSink(OnPulsar, SinkContract):
    component = PulsarSink
    bad_row = {"id": 3, "name": "x" * LARGEST}

    @pytest.fixture
    def rows(self, pulsar: Pulsar, topic: str) -> Any:
        return lambda schema: self.decoded([m.data() for m in pulsar.messages(topic)], schema)
