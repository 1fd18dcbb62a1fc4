"""Pulsar: topics, subscriptions and readers."""

from penstock.connectors.pulsar.sink import PulsarSink, PulsarSinkConfig
from penstock.connectors.pulsar.source import PulsarSource, PulsarSourceConfig

__all__ = ["PulsarSink", "PulsarSinkConfig", "PulsarSource", "PulsarSourceConfig"]
