"""NATS: subjects, JetStream streams and key-value buckets."""

from penstock.connectors.nats.sink import NatsSink, NatsSinkConfig
from penstock.connectors.nats.source import NatsSource, NatsSourceConfig

__all__ = ["NatsSink", "NatsSinkConfig", "NatsSource", "NatsSourceConfig"]
