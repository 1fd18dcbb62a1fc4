"""Entries of streams as messages: which field is the payload, and what else is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.ids import Id

ALL_FIELDS = "*"
METADATA = pa.schema(
    [
        ("stream", pa.string()),
        ("id", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("fields", pa.map_(pa.string(), pa.binary())),
    ]
)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999; larger ids are not times."""


def payload(fields: Mapping[bytes, bytes], field: str) -> bytes | None:
    """The value of the field; of `*`, all of them as a JSON object of texts."""
    if field != ALL_FIELDS:
        return fields.get(field.encode())
    texts = {_text(name): _text(value) for name, value in fields.items()}
    return json.dumps(texts, ensure_ascii=False).encode()


def about(stream: str, id_: Id, fields: Mapping[bytes, bytes], field: str) -> dict[str, Any]:
    """The metadata of an entry; its fields are those beside the payload."""
    shown = id_.milliseconds <= _LATEST
    return {
        "stream": stream,
        "id": str(id_),
        "timestamp": _BEGIN + timedelta(milliseconds=id_.milliseconds) if shown else None,
        "fields": [(_text(name), value) for name, value in fields.items() if _text(name) != field],
    }


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
