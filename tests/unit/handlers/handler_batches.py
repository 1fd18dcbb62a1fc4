"""Batches for tests of handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.handlers.handler import Handler
from penstock.handlers.metadata import with_group, with_schema_value, with_time


def batch(
    group: Mapping[str, str | None] | None = None, unit: str = "s", **columns: Any
) -> pa.RecordBatch:
    """Returns a batch of columns; the column `time` has integers of a unit and is the time."""
    arrays = {
        name: pa.array(values, pa.int64()).cast(pa.timestamp(unit)) if name == "time"
        else values if isinstance(values, pa.Array) else pa.array(values)
        for name, values in columns.items()
    }  # fmt: skip
    schema = pa.schema([(name, values.type) for name, values in arrays.items()])
    schema = with_time(schema, "time") if "time" in arrays else with_schema_value(schema, "x", "")
    return pa.RecordBatch.from_arrays(list(arrays.values()), schema=with_group(schema, group or {}))


def column(output: pa.RecordBatch, name: str) -> list[Any]:
    values = output.column(output.schema.get_field_index(name))
    is_time = pa.types.is_timestamp(values.type)
    found: list[Any] = (values.cast(pa.int64()) if is_time else values).to_pylist()
    return found


def columns(outputs: list[pa.RecordBatch], name: str) -> list[list[Any]]:
    return [column(output, name) for output in outputs]


def dropped(handler: Handler, name: str = "time") -> list[tuple[list[Any], str]]:
    """Returns the values and the reasons of the rows that a handler has left out."""
    return [(column(each.rows, name), each.reason) for each in handler.take_dropped()]
