"""Depth of groups in Protobuf messages: the native decoder overflows its stack on nested groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.protobuf.wire import END_GROUP, LENGTH, START_GROUP, read_varint, skip_value
from penstock.sdk.columns.binary_arrays import values_and_offsets

MAX_DEPTH = 100
"""The maximum depth of groups, as in Google's libraries."""


def check_depth(payloads: pa.BinaryArray, descriptor: Any) -> None:
    """Raises DecodeError if a payload has groups nested more than `MAX_DEPTH` levels deep.

    Ignores invalid payloads. No payload may be null.
    """
    values, offsets = values_and_offsets(payloads)
    starts = np.concatenate([[0], np.cumsum((values & 7) == START_GROUP)])
    if starts[-1] <= MAX_DEPTH:
        return
    for index in np.flatnonzero(np.diff(starts[offsets]) > MAX_DEPTH):
        payload = payloads[int(index)].as_py()
        if not _is_accepted(payload, descriptor) and _is_deep(payload, descriptor):
            raise DecodeError(
                f"not the Protobuf message: groups nested more than {MAX_DEPTH} levels deep",
                code="too-deep",
            )


def _is_accepted(payload: bytes, descriptor: Any) -> bool:
    """Returns whether Google's library decodes the payload. The library limits the depth."""
    from google.protobuf.message import DecodeError as Malformed
    from google.protobuf.message_factory import GetMessageClass

    try:
        GetMessageClass(descriptor).FromString(payload)
    except Malformed:
        return False
    return True


def _is_deep(payload: bytes, descriptor: Any) -> bool:
    """Returns whether the fields before the first invalid one exceed `MAX_DEPTH`.

    `within` has the message of each open group, None for an unknown group, and `ends` the end of
    each open message. A message in a group is a field of a known group only.
    """
    within: list[Any] = [descriptor]
    groups = position = 0
    ends: list[tuple[int, int]] = []
    try:
        while position < len(payload):
            while ends and position >= ends[-1][0]:
                _, depth = ends.pop()
                del within[depth:]
            tag, position = read_varint(payload, position)
            kind, child = tag & 7, _child(within[-1], tag >> 3)
            if kind == START_GROUP:
                within.append(child)
                groups += 1
                if groups > MAX_DEPTH:
                    return True
            elif kind == END_GROUP:
                within.pop()
                groups -= 1
            elif kind == LENGTH:
                length, position = read_varint(payload, position)
                if child is None:
                    position += length
                else:
                    ends.append((position + length, len(within)))
                    within.append(child)
            else:
                position = skip_value(payload, kind, position)
    except (IndexError, KeyError):
        return False
    return False


def _child(message: Any, number: int) -> Any:
    """Returns the message type of a field; None for other and unknown fields."""
    field = None if message is None else message.fields_by_number.get(number)
    return None if field is None else field.message_type
