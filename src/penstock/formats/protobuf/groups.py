"""Groups of Protobuf messages as nested messages, which the native decoder and encoder expect.

The native library ignores known groups when it reads, and does not write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.protobuf.wire import (
    END_GROUP,
    LENGTH,
    START_GROUP,
    read_varint,
    skip_value,
    varint,
)


@dataclass(frozen=True)
class Nested:
    """A field with messages: whether it is a group, and the fields with groups within it."""

    is_group: bool
    fields: Mapping[int, Nested] = field(default_factory=dict)


Fields = Mapping[int, Nested]
"""The fields of a message that are groups or contain groups, by number."""


def without_groups(payloads: pa.BinaryArray, fields: Fields) -> pa.BinaryArray:
    """Returns messages with nested messages in place of known groups.

    No payload may be null. Raises DecodeError for an invalid message.
    """
    return pa.array([_read(payload, fields) for payload in payloads.to_pylist()], pa.binary())


def _read(payload: bytes, fields: Fields) -> bytes:
    try:
        content, position = _Conversion(payload).read_message(0, len(payload), fields)
        complete = position == len(payload)
    except (IndexError, KeyError):
        complete = False
    if not complete:
        raise DecodeError("not the Protobuf message: invalid fields", code="not-protobuf")
    return content


def with_groups(payloads: pa.BinaryArray, fields: Fields) -> pa.BinaryArray:
    """Returns messages with groups in place of nested messages, as `fields` has them."""
    return pa.array([_write(payload, fields) for payload in payloads.to_pylist()], pa.binary())


class _Conversion:
    """The conversion of the groups of one message."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def read_message(self, position: int, end: int, fields: Fields) -> tuple[bytes, int]:
        """Returns the content up to `end` or an end of a group, and the position of its tag."""
        out = bytearray()
        while position < end:
            start = position
            tag, position = read_varint(self.payload, position)
            if tag & 7 == END_GROUP:
                return bytes(out), start
            nested = fields.get(tag >> 3)
            if tag & 7 == START_GROUP:
                content, position = self._group(position, end, tag >> 3, nested)
                known = nested is not None and nested.is_group
                out += _delimited(tag >> 3, content) if known else self.payload[start:position]
            elif tag & 7 == LENGTH and nested is not None:
                length, position = read_varint(self.payload, position)
                if not nested.is_group:
                    content, _ = self.read_message(position, position + length, nested.fields)
                    out += _delimited(tag >> 3, content)
                position += length
            else:
                position = skip_value(self.payload, tag & 7, position)
                out += self.payload[start:position]
        if position > end:
            raise IndexError
        return bytes(out), position

    def _group(
        self, position: int, end: int, number: int, nested: Nested | None
    ) -> tuple[bytes, int]:
        """Returns the content of a group, and the position after its end."""
        fields = nested.fields if nested is not None else {}
        content, position = self.read_message(position, end, fields)
        tag, position = read_varint(self.payload, position)
        if tag != number << 3 | END_GROUP:
            raise KeyError(tag)
        return content, position


def _write(payload: bytes, fields: Fields) -> bytes:
    out, position = bytearray(), 0
    while position < len(payload):
        start = position
        tag, position = read_varint(payload, position)
        nested = fields.get(tag >> 3)
        if nested is None or tag & 7 != LENGTH:
            position = skip_value(payload, tag & 7, position)
            out += payload[start:position]
            continue
        length, position = read_varint(payload, position)
        content = _write(payload[position : position + length], nested.fields)
        position += length
        if nested.is_group:
            number = tag >> 3
            start_tag, end_tag = (varint(number << 3 | kind) for kind in (START_GROUP, END_GROUP))
            out += start_tag + content + end_tag
        else:
            out += _delimited(tag >> 3, content)
    return bytes(out)


def _delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | LENGTH) + varint(len(content)) + content
