"""Sentinel row: moves the watermark past all windows of a pipeline whose input has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

END_OF_TIME = datetime(9900, 1, 1, tzinfo=UTC)
"""Event time of the sentinel row."""


def sentinel(rows: pa.Schema, event_time: str | None) -> pa.RecordBatch:
    """Returns a batch with the sentinel row: the event time `END_OF_TIME`, nulls otherwise."""
    columns = [
        pa.array([END_OF_TIME if field.name == event_time else _filler(field)], field.type)
        for field in rows
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows)


def _filler(field: pa.Field) -> Any:
    """Returns null, or the zero value of a type that is not nullable."""
    if field.nullable:
        return None
    if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type):
        return datetime(1970, 1, 1)
    if pa.types.is_string(field.type):
        return ""
    if pa.types.is_binary(field.type):
        return b""
    if pa.types.is_boolean(field.type):
        return False
    if pa.types.is_list(field.type) or pa.types.is_map(field.type):
        return []
    if pa.types.is_struct(field.type):
        return {child.name: _filler(child) for child in field.type}
    return 0
