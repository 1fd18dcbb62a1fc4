"""Kafka with confluent-kafka."""

from __future__ import annotations

from typing import Any

from clients.system import Ready, System
from penstock.connectors.kafka import KafkaSink, KafkaSource
from servers.kafka import Kafka


class KafkaTopic(System):
    name, source, sink = "kafka", KafkaSource, KafkaSink
    messages = 500_000

    @classmethod
    def server(cls) -> Any:
        return Kafka()

    def __init__(self, server: Any) -> None:
        self._topic = server.create_topic()
        self._brokers = server.address
        self._client = {"bootstrap.servers": server.address}

    def options(self) -> dict[str, Any]:
        return {"brokers": self._brokers, "topic": self._topic}

    def send(self, payloads: list[bytes]) -> None:
        from confluent_kafka import Producer

        producer = Producer({**self._client, "linger.ms": 5, "queue.buffering.max.messages": 10**6})
        for payload in payloads:
            producer.produce(self._topic, payload)
        producer.flush()

    def take(self, count: int, ready: Ready) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({**self._client, "group.id": "bench", "enable.auto.commit": False})
        consumer.assign([TopicPartition(self._topic, 0, 0)])
        ready()
        taken = 0
        while taken < count:
            taken += len(consumer.consume(10_000, 1))
        consumer.close()
        return taken
