"""Apache Pulsar."""

from penstock.connectors.pulsar.sink import PulsarSink
from penstock.connectors.pulsar.source import PulsarSource

__all__ = ["PulsarSink", "PulsarSource"]
