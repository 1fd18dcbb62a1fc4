"""Metadata of Pulsar messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.pulsar.offsets import MessagePosition

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
        ("headers", pa.map_(pa.string(), pa.string())),
        ("producer", pa.string()),
        ("redelivery_count", pa.int32()),
    ]
)
_PARTITION = re.compile(r"-partition-(\d+)$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def partition_metadata(partition: str) -> dict[str, Any]:
    """Returns the metadata that the name of a partition determines."""
    match_ = _PARTITION.search(partition)
    number = int(match_[1]) if match_ else None
    return {"topic": _PARTITION.sub("", partition), "partition": number}


def message_metadata(message: Message, name: str) -> Any:
    """Returns one field of METADATA."""
    match name:
        case "topic" | "partition":
            return partition_metadata(message.topic_name())[name]
        case "message_id":
            return str(MessagePosition.of(message.message_id()))
        case "key":
            return message.partition_key() or None
        case "ordering_key":
            return message.ordering_key() or None
        case "publish_time":
            return _time(message.publish_timestamp())
        case "event_time":
            return _time(message.event_timestamp())
        case "headers":
            return dict(message.properties())
        case "producer":
            return message.producer_name()
    return message.redelivery_count()


def message_payload(message: Message) -> bytes | None:
    """Returns the payload; None for a tombstone."""
    return None if message.has_null_value() else bytes(message.data())


def _time(milliseconds: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=milliseconds) if milliseconds else None
