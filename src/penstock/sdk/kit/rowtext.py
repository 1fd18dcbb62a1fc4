"""A row as JSON text, in the form that the json format reads back."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


def payload_of(batch: pa.RecordBatch, index: int) -> bytes:
    """The row as JSON: times as ISO-8601 in UTC, binary as base64, decimals as text."""
    (row,) = batch.slice(index, 1).to_pylist()
    return row_text(row).encode()


def row_text(row: Any) -> str:
    """A row of Python values as one line of JSON."""
    return json.dumps(row, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return moment.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
