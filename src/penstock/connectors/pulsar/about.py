"""What is known of a message beside its payload."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.pulsar.position import Id

if TYPE_CHECKING:
    from pulsar import Message

METADATA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("message_id", pa.string()),
        ("key", pa.string()),
        ("ordering_key", pa.string()),
        ("publish_time", pa.timestamp("us", tz="UTC")),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("producer", pa.string()),
        ("redelivery_count", pa.int32()),
    ]
)
_PARTITION = re.compile(r"-partition-(\d+)$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def about(message: Message, name: str) -> Any:
    """One of METADATA."""
    topic = message.topic_name()
    match name:
        case "topic":
            return _PARTITION.sub("", topic)
        case "partition":
            found = _PARTITION.search(topic)
            return int(found[1]) if found else None
        case "message_id":
            return str(Id.of(message.message_id()))
        case "key":
            return message.partition_key() or None
        case "ordering_key":
            return message.ordering_key() or None
        case "publish_time":
            return _time(message.publish_timestamp())
        case "event_time":
            return _time(message.event_timestamp())
        case "properties":
            return dict(message.properties())
        case "producer":
            return message.producer_name()
    return message.redelivery_count()


def payload(message: Message) -> bytes | None:
    """What the format decodes; None where a key was deleted."""
    return None if message.has_null_value() else bytes(message.data())


def _time(milliseconds: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=milliseconds) if milliseconds else None
