"""Apache Pulsar with pulsar-client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clients.system import Ready, System
from penstock.connectors.pulsar import PulsarSink, PulsarSource
from servers.pulsar import Pulsar


class PulsarTopic(System):
    name, source, sink = "pulsar", PulsarSource, PulsarSink

    @classmethod
    def server(cls) -> Any:
        return Pulsar()

    def __init__(self, server: Any) -> None:
        self._login, self._topic = server.login, server.new_topic()

    def options(self) -> dict[str, Any]:
        return {**self._login, "topic": self._topic}

    def send(self, payloads: list[bytes]) -> None:
        with self._client() as client:
            producer = client.create_producer(
                self._topic, block_if_queue_full=True, batching_enabled=True
            )
            for payload in payloads:
                producer.send_async(payload, None)
            producer.flush()

    def take(self, count: int, ready: Ready) -> int:
        import pulsar

        with self._client() as client:
            reader = client.create_reader(self._topic, pulsar.MessageId.earliest)
            ready()
            for _ in range(count):
                reader.read_next(30_000)
        return count

    @contextmanager
    def _client(self) -> Iterator[Any]:
        import pulsar

        quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        token = pulsar.AuthenticationToken(self._login["auth"]["token"])
        client = pulsar.Client(self._login["url"], authentication=token, logger=quiet)
        try:
            yield client
        finally:
            client.close()
