"""Event times of tables that declare none: the time of a message, or of its arrival."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.spec.script.arroyo.connectors import find_connector
from penstock.spec.script.options import Option
from penstock.spec.yaml.nodes import ScalarNode

_METADATA = {
    "generate": "time",
    "http": "received",
    "http_poll": "received",
    "impulse": "time",
    "kafka": "timestamp",
    "kinesis": "arrival_time",
    "modbus": "received",
    "mqtt": "received",
    "nats": "received",
    "nexmark": "time",
    "pulsar": "publish_time",
    "redis": "received",
    "sqs": "sent",
    "sse": "received",
    "tcp": "received",
    "udp": "received",
    "websocket": "received",
    "zeromq": "received",
}
"""The metadata by the type of the source. A message of RabbitMQ may lack its time."""
_OF_STREAMS = {("nats", "bucket"), ("nats", "stream"), ("redis", "stream")}
"""Types with an option that selects messages with a time, the metadata `timestamp`."""
_FILES = ("single_file", "filesystem")
"""Connectors of Arroyo whose rows have the time of the file, the metadata `modified`."""


def event_time_of(options: Sequence[Option]) -> str | None:
    """Returns the metadata that is the event time of a table without a watermark, or None."""
    named = {option.name: option.value for option in options}
    connector = named.get("connector")
    if not isinstance(connector, ScalarNode):
        return None
    name = str(connector.value)
    type_ = find_connector(name, named).type
    if name in _FILES:
        return "modified"
    if any((type_, option) in _OF_STREAMS for option in named):
        return "timestamp"
    return _METADATA.get(type_)
