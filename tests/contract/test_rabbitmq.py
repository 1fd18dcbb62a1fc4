from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.connectors.rabbitmq import RabbitmqSink, RabbitmqSource, RabbitmqStreamSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from servers.gate import Gate
from servers.rabbitmq import USER, Rabbit


class OnRabbitmq:
    """Fixtures of the contracts."""

    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}
    kind = "classic"

    @pytest.fixture
    def server(self, rabbitmq: Rabbit) -> Rabbit:
        return rabbitmq

    @pytest.fixture
    def queue(self, rabbitmq: Rabbit) -> Iterator[str]:
        name = rabbitmq.new_queue(self.kind)
        yield name
        rabbitmq.delete(name)


class TestRabbitmqSource(OnRabbitmq, ReceivingContract):
    component = RabbitmqSource

    @pytest.fixture
    def options(self, rabbitmq: Rabbit, queue: str) -> dict[str, Any]:
        return {**rabbitmq.login, "queue": queue, "timeout": "5s"}

    @pytest.fixture
    def send(self, rabbitmq: Rabbit, queue: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: rabbitmq.publish(queue, payloads)


class TestRabbitmqSourceQuorum(TestRabbitmqSource):
    kind = "quorum"


class TestRabbitmqStreamSource(OnRabbitmq, SourceContract):
    component = RabbitmqStreamSource
    kind = "stream"
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def server(self, rabbitmq: Rabbit) -> Iterator[Gate]:
        """Yields the way to the broker, which need not restart for a client that only reads."""
        gate = Gate(rabbitmq.port)
        yield gate
        gate.stop()

    @pytest.fixture
    def options(self, rabbitmq: Rabbit, server: Gate, queue: str) -> dict[str, Any]:
        return {**rabbitmq.login, "url": f"amqp://127.0.0.1:{server.port}", "stream": queue}

    @pytest.fixture
    def put(self, rabbitmq: Rabbit, queue: str) -> Any:
        return lambda rows, schema: rabbitmq.publish(queue, self.encode(rows, schema))


class TestRabbitmqSink(OnRabbitmq, SinkContract):
    component = RabbitmqSink

    @pytest.fixture
    def options(self, rabbitmq: Rabbit, queue: str) -> dict[str, Any]:
        return {**rabbitmq.login, "routing_key": queue}

    @pytest.fixture
    def rows(self, rabbitmq: Rabbit, queue: str) -> Any:
        return lambda schema: self.decode([m.body for m in rabbitmq.messages(queue)], schema)
