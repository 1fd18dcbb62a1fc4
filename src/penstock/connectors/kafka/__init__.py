"""Apache Kafka, and whatever speaks its protocol."""

from penstock.connectors.kafka.sink import KafkaSink, KafkaSinkConfig
from penstock.connectors.kafka.source import KafkaSource, KafkaSourceConfig

__all__ = ["KafkaSink", "KafkaSinkConfig", "KafkaSource", "KafkaSourceConfig"]
