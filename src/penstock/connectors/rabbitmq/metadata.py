"""Metadata of RabbitMQ messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.sdk.columns.row_json import row_text

if TYPE_CHECKING:
    from aio_pika.abc import AbstractIncomingMessage

OFFSET_HEADER = "x-stream-offset"
METADATA = pa.schema(
    [
        ("exchange", pa.string()),
        ("routing_key", pa.string()),
        ("message_id", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("content_type", pa.string()),
        ("content_encoding", pa.string()),
        ("correlation_id", pa.string()),
        ("reply_to", pa.string()),
        ("type", pa.string()),
        ("user_id", pa.string()),
        ("app_id", pa.string()),
        ("priority", pa.int32()),
        ("ttl", pa.int64()),
        ("persistent", pa.bool_()),
    ]
)
"""Metadata of messages of queues and streams; `ttl` is in milliseconds."""
DELIVERY_METADATA = pa.schema([("redelivered", pa.bool_()), ("delivery_count", pa.int64())])
"""Metadata of messages of queues; `delivery_count` is set by quorum queues."""


def message_metadata(message: AbstractIncomingMessage) -> dict[str, Any]:
    """Returns the metadata of a message by name."""
    headers = dict(message.headers)
    count = headers.pop("x-delivery-count", None)
    offset = headers.pop(OFFSET_HEADER, None)
    ttl = message.expiration
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "message_id": message.message_id,
        "headers": [(name, _text(value)) for name, value in headers.items()],
        "timestamp": message.timestamp,
        "content_type": message.content_type,
        "content_encoding": message.content_encoding,
        "correlation_id": message.correlation_id,
        "reply_to": message.reply_to,
        "type": message.type,
        "user_id": message.user_id,
        "app_id": message.app_id,
        "priority": message.priority,
        "ttl": None if ttl is None else int(1000 * float(str(ttl))),
        "persistent": message.delivery_mode == 2,
        "redelivered": message.redelivered,
        "delivery_count": count,
        "offset": offset,
    }


def _text(value: Any) -> str | None:
    """Returns a header value as text: lists and tables as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    return row_text(value)
