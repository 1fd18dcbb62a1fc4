"""Apache Kafka and systems with the same protocol."""

from penstock.connectors.kafka.sink import KafkaSink
from penstock.connectors.kafka.source import KafkaSource

__all__ = ["KafkaSink", "KafkaSource"]
