"""Payload and metadata of stream entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.offsets import EntryId

METADATA = pa.schema(
    [
        ("stream", pa.string()),
        ("id", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("fields", pa.map_(pa.string(), pa.binary())),
    ]
)
_ALL_FIELDS = "*"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MILLISECONDS = 253_402_300_799_999
"""The last millisecond of the year 9999. Larger IDs have no timestamp."""


def entry_payload(fields: Mapping[bytes, bytes], field: str) -> bytes | None:
    """Returns the value of a field; for `*`, a JSON object of all fields as texts."""
    if field != _ALL_FIELDS:
        return fields.get(field.encode())
    texts = {_decode(name): _decode(value) for name, value in fields.items()}
    return json.dumps(texts, ensure_ascii=False).encode()


def entry_size(fields: Mapping[bytes, bytes]) -> int:
    """Returns the size of an entry in bytes."""
    return sum(len(name) + len(value) for name, value in fields.items())


def entry_metadata(
    stream: str, id_: EntryId, fields: Mapping[bytes, bytes], field: str
) -> dict[str, Any]:
    """Returns the metadata of an entry. Its `fields` exclude the payload's field."""
    names = [(_decode(name), value) for name, value in fields.items()]
    kept = [(name, value) for name, value in names if name != field]
    return {**identity_metadata(stream, id_), "fields": kept}


def identity_metadata(stream: str, id_: EntryId) -> dict[str, Any]:
    """Returns the metadata of an entry that its stream and ID determine."""
    has_time = id_.milliseconds <= _MAX_MILLISECONDS
    return {
        "stream": stream,
        "id": str(id_),
        "timestamp": _EPOCH + timedelta(milliseconds=id_.milliseconds) if has_time else None,
    }


def _decode(value: bytes) -> str:
    return value.decode(errors="replace")
