"""Received messages, and batches of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

_OVERHEAD = 64
"""The estimated size of a message without its payload, in bytes."""
RECEIVED = pa.field("received", pa.timestamp("us", tz="UTC"))
"""The column of the time at which a message was appended, set by the journal."""
REJECTED_SIZE = pa.field("rejected_size", pa.int64())
"""The column of the size of a message that exceeds the bound; null for all other messages."""
_MAX_METADATA_BYTES = 1 << 20
"""The maximum size of the metadata of a message, unless the bound of a message is larger."""
_TEXTS = frozenset({str, bytes})
_SCALARS = frozenset({type(None), bool, int, float, datetime})
_HEAD_BYTES = 1024
"""The length of the head that remains of the payload of such a message."""


class Message(NamedTuple):
    """A received message. `metadata` has the values of the other columns of the journal."""

    payload: bytes | None
    metadata: Mapping[str, Any] = MappingProxyType({})


Messages: TypeAlias = Sequence[Message] | pa.RecordBatch
"""Messages, or rows of them with the columns of the metadata and `payload`."""


def bound_messages(messages: Messages, max_size: int | None) -> Messages:
    """Replaces messages whose payload exceeds `max_size`: the head of the payload remains.

    The metadata is bounded as well, that of rows only beside a large payload. The size of both is
    the value of `REJECTED_SIZE`.
    """
    if max_size is None:
        return messages
    if isinstance(messages, pa.RecordBatch):
        largest = pc.max(pc.binary_length(messages.column("payload"))).as_py()
        if largest is None or largest <= max_size:
            return messages
        messages = [Message(row.pop("payload"), row) for row in messages.to_pylist()]
    metadata, metadata_size = None, 0
    bounded = []
    max_metadata_size = max(max_size, _MAX_METADATA_BYTES)
    for message in messages:
        if message.metadata is not metadata:
            metadata, metadata_size = message.metadata, _extent_of_all(message.metadata.values())
        size = len(message.payload or b"")
        fits = size <= max_size and metadata_size <= max_metadata_size
        bounded.append(message if fits else _truncate(message, size + metadata_size))
    return bounded


def _truncate(message: Message, size: int) -> Message:
    metadata = {
        name: value for name, value in message.metadata.items() if _extent(value) <= _HEAD_BYTES
    }
    payload = None if message.payload is None else message.payload[:_HEAD_BYTES]
    return Message(payload, {**metadata, REJECTED_SIZE.name: size})


def _extent(value: Any) -> int:
    """Returns the bytes of texts and bytes in a value, approximately."""
    if type(value) in _TEXTS:
        return len(value)
    if isinstance(value, Mapping):
        return _extent_of_all(value.keys()) + _extent_of_all(value.values())
    return _extent_of_all(value) if isinstance(value, list | tuple) else 0


def _extent_of_all(values: Iterable[Any]) -> int:
    size = 0
    for value in values:
        kind = type(value)
        if kind in _TEXTS:
            size += len(value)
        elif kind not in _SCALARS:
            size += _extent(value)
    return size


def size_of(messages: Messages) -> int:
    """Returns the estimated size of messages in bytes."""
    if isinstance(messages, pa.RecordBatch):
        return int(messages.column("payload").nbytes) + _OVERHEAD * len(messages)
    return sum(len(message.payload or b"") + _OVERHEAD for message in messages)


def to_batch(parts: Iterable[Messages], schema: pa.Schema) -> pa.RecordBatch:
    """Returns parts of messages as rows, with the current time in `received`."""
    batches = [
        pa.RecordBatch.from_arrays([_column(part, field) for field in schema], schema=schema)
        for part in _joined(parts)
    ]
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _joined(parts: Iterable[Messages]) -> Iterator[Messages]:
    """Yields rows as they are, and messages between them together."""
    messages: list[Message] = []
    for part in parts:
        if not isinstance(part, pa.RecordBatch):
            messages += part
            continue
        if messages:
            yield messages
        yield part
        messages = []
    if messages:
        yield messages


def _column(messages: Messages, field: pa.Field) -> pa.Array:
    if field == RECEIVED:
        return pa.repeat(pa.scalar(time.time_ns() // 1000, RECEIVED.type), len(messages))
    if isinstance(messages, pa.RecordBatch):
        if field.name not in messages.schema.names:
            return pa.nulls(len(messages), field.type)
        return messages.column(field.name).cast(field.type)
    if field.name == "payload":
        return pa.array([message.payload for message in messages], pa.binary())
    return pa.array([message.metadata.get(field.name) for message in messages], field.type)
