from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.connectors.pulsar import PulsarSink, PulsarSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from penstock.testing.contract.rows import make_rows, sort_by_id
from penstock.testing.contract.source_harness import restore_offset
from servers.pulsar import LARGEST, Pulsar, token
from servers.server import free_port


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
    def put(self, pulsar: Pulsar, topic: str) -> Any:
        return lambda rows, schema: pulsar.send(topic, self.encode(rows, schema))

    def test_resume_after_server_crash(  # type: ignore[override]
        self, options: dict[str, Any], create_source: Any, put: Any, pulsar: Pulsar, topic: str
    ) -> None:
        """Reads on in a new ledger, which the broker begins when it starts or unloads a topic.

        The test of subscriptions kills the broker.
        """
        put(make_rows(*range(10)), sample.SIMPLE)
        source = create_source()
        start = restore_offset(source.initial_offset())
        end = restore_offset(source.latest_offset(start))
        rows = self.read_range(source, start, end)
        source.close()
        pulsar.admin("PUT", f"persistent/public/default/{topic}/unload")
        self.assert_check_is_transient({**options, "url": f"pulsar://127.0.0.1:{free_port()}"})
        assert self.read_range(create_source(), start, end) == rows
        put(make_rows(10), sample.SIMPLE)
        rest, _ = self.read_all(create_source(), end)
        assert sort_by_id(rows + rest) == make_rows(*range(11))

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
