"""NATS: subjects, JetStream streams and key-value buckets."""

from penstock.connectors.nats.sink import NatsSink
from penstock.connectors.nats.source import NatsSource

__all__ = ["NatsSink", "NatsSource"]
