from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.connectors.pulsar import PulsarSink, PulsarSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from servers.gate import Gate
from servers.pulsar import LARGEST, Pulsar, token


class OnPulsar:
    """Fixtures of the contracts."""

    wrong_credentials = {"auth": {"token": token() + "wrong"}}

    @pytest.fixture
    def server(self, pulsar: Pulsar) -> Pulsar:
        return pulsar

    @pytest.fixture
    def topic(self, pulsar: Pulsar) -> str:
        return pulsar.new_topic()

    @pytest.fixture
    def options(self, pulsar: Pulsar, topic: str) -> dict[str, Any]:
        return {**pulsar.login, "topic": topic}

    def test_check_of_paused_server_times_out(self, options: dict[str, Any], server: Any) -> None:
        options["timeout"] = "3s"
        super().test_check_of_paused_server_times_out(options, server)  # type: ignore[misc]


class TestPulsarTopic(OnPulsar, SourceContract):
    component = PulsarSource
    variant = "topic: orders"
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def server(self, pulsar: Pulsar, topic: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
        """Yields the way to the broker. Its `kill` ends the ledger of the topic, as a restart does.

        The test of subscriptions kills the broker.
        """
        gate = Gate(pulsar.port)

        def kill() -> None:
            gate.stop()
            pulsar.admin("PUT", f"persistent/public/default/{topic}/unload")

        monkeypatch.setattr(gate, "kill", kill)
        yield gate
        gate.stop()

    @pytest.fixture
    def options(self, pulsar: Pulsar, server: Gate, topic: str) -> dict[str, Any]:
        return {**pulsar.login, "url": f"pulsar://127.0.0.1:{server.port}", "topic": topic}

    @pytest.fixture
    def put(self, pulsar: Pulsar, topic: str) -> Any:
        return lambda rows, schema: pulsar.send(topic, self.encode(rows, schema))

    @pytest.fixture
    def put_at_same_position(self, pulsar: Pulsar, topic: str) -> Any:
        return lambda rows, schema: pulsar.send_together(topic, self.encode(rows, schema))


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
        return lambda schema: self.decode([m.data() for m in pulsar.messages(topic)], schema)
