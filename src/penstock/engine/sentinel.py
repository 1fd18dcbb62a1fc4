"""The row at the end of time, which closes all windows of a pipeline whose input has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

END_OF_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""Its event time."""


def sentinel(rows: pa.Schema, event_time: str | None) -> pa.RecordBatch:
    """One row without content at the end of time."""
    columns = [
        pa.array([END_OF_TIME if field.name == event_time else _filler(field)], field.type)
        for field in rows
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows)


def _filler(field: pa.Field) -> Any:
    """Null, or where null is not allowed the type's zero."""
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
        return {each.name: _filler(each) for each in field.type}
    return 0
