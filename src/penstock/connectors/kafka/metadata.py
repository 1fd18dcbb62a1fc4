"""Batches of records: payloads and metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.connectors.kafka.offsets import Partition
from penstock.core.errors import DecodeError
from penstock.sdk import Read
from penstock.sdk.keys import KEY

if TYPE_CHECKING:
    from confluent_kafka import Message

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
METADATA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("headers", HEADERS),
    ]
)


_MAX_MILLISECONDS = (2**63 - 1) // 1000


class PartitionRecords(NamedTuple):
    """Records of one partition, in order."""

    partition: Partition
    messages: list[Message]

    @property
    def origin(self) -> str:
        return self.partition.origin

    def offsets(self) -> pa.Array:
        """Returns the offset of each record."""
        if is_contiguous(self.messages):
            first = self.messages[0].offset()
            return pa.array(np.arange(first, first + len(self.messages)))
        return pa.array([message.offset() for message in self.messages], pa.int64())


def is_contiguous(messages: list[Message]) -> bool:
    """Returns whether messages are of one partition without gaps, by the first and the last."""
    first, last = messages[0], messages[-1]
    distance = (last.offset() or 0) - (first.offset() or 0)
    same_partition = (first.topic(), first.partition()) == (last.topic(), last.partition())
    return same_partition and distance == len(messages) - 1


def with_valid_times(records: Sequence[PartitionRecords], read: Read) -> Iterator[PartitionRecords]:
    """Yields the records whose timestamps a TIMESTAMP can hold, and rejects the others."""
    for part in records:
        invalid = [message for message in part.messages if _has_invalid_time(message)]
        for message in invalid:
            error = DecodeError(
                "expected a timestamp that microseconds in 64 bits can hold, found "
                f"{message.timestamp()[1]} ms",
                code="invalid-timestamp",
            )
            read.reject(message.value(), part.origin, message.offset(), error)
        if not invalid:
            yield part
        elif len(invalid) < len(part.messages):
            valid = [message for message in part.messages if not _has_invalid_time(message)]
            yield PartitionRecords(part.partition, valid)


def _has_invalid_time(message: Message) -> bool:
    """Returns whether the timestamp of a record overflows microseconds in 64 bits."""
    kind, milliseconds = message.timestamp()
    return bool(kind) and abs(milliseconds) > _MAX_MILLISECONDS


def record_batch(
    records: Sequence[PartitionRecords], metadata: Sequence[str], *, with_keys: bool = False
) -> pa.RecordBatch:
    """Returns records as a batch of `PAYLOAD` and the requested metadata columns.

    `with_keys` adds the column `KEY`.
    """
    if len(records) == 1:
        messages = records[0].messages
    else:
        messages = [message for part in records for message in part.messages]
    columns: list[pa.Array] = [
        pa.array([message.value() for message in messages], pa.binary()),
        _concat([pa.repeat(part.origin, len(part.messages)) for part in records]),
        _concat([part.offsets() for part in records]),
    ]
    columns += [_metadata_column(messages, name) for name in metadata]
    names = ["payload", "origin", "position", *metadata]
    if with_keys:
        columns.append(_metadata_column(messages, "key"))
        names.append(KEY)
    return pa.RecordBatch.from_arrays(columns, names=names)


def _concat(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _metadata_column(messages: Sequence[Message], name: str) -> pa.Array:
    type_ = METADATA.field(name).type
    if name == "timestamp":
        times = [message.timestamp() for message in messages]
        return pa.array([ms * 1000 if kind else None for kind, ms in times], type_)
    if name == "headers":
        return pa.array([_headers(message) for message in messages], type_)
    return pa.array([getattr(message, name)() for message in messages], type_)


def _headers(message: Message) -> list[dict[str, Any]] | None:
    headers = message.headers()
    if headers is None:
        return None
    return [{"key": key, "value": value} for key, value in headers]
