"""One record as it arrives, and how records become a batch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

_OVERHEAD = 64
"""What a message takes beside its payload, roughly."""
RECEIVED = pa.field("received", pa.timestamp("us", tz="UTC"))
"""A column that the journal fills itself: when a message was given to it."""


class Message(NamedTuple):
    """One record as it arrived. `metadata` has values for the journal's other columns."""

    payload: bytes | None
    metadata: Mapping[str, Any] = MappingProxyType({})


def size_of(messages: Sequence[Message]) -> int:
    """The bytes that they take, roughly."""
    return sum(len(message.payload or b"") + _OVERHEAD for message in messages)


def batch_of(messages: Sequence[Message], schema: pa.Schema) -> pa.RecordBatch:
    """The messages as rows; given to the journal now."""
    columns = [_column(messages, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(messages: Sequence[Message], field: pa.Field) -> pa.Array:
    if field.name == "payload":
        return pa.array([message.payload for message in messages], pa.binary())
    if field == RECEIVED:
        return pa.repeat(pa.scalar(time.time_ns() // 1000, RECEIVED.type), len(messages))
    return pa.array([message.metadata.get(field.name) for message in messages], field.type)
