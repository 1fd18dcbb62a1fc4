"""Roles of columns and groups of batches, in the metadata of the Arrow schema.

The schema names the time column (`time_column_name`), the measurement column
(`measurement_column_name`) and the group (`group`). A field has its role (`column_type`) and the
unit of its integers (`time_unit`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError

Group = Mapping[str, str | None]
"""The values of the grouping columns by name, as texts; None is null."""

TIME_COLUMN, MEASUREMENT_COLUMN, GROUP = "time_column_name", "measurement_column_name", "group"
COLUMN_TYPE, TIME_UNIT = "column_type", "time_unit"


class Role(StrEnum):
    """The role of a column."""

    UNKNOWN = "UNKNOWN"
    TIME = "TIME"
    MEASUREMENT = "MEASUREMENT"
    TAG = "TAG"
    FIELD = "FIELD"


class TimeUnit(StrEnum):
    """The unit of the integers of a column with durations."""

    NANO = "NANO"
    MICRO = "MICRO"
    MILLI = "MILLI"
    SECOND = "SECOND"
    MINUTE = "MINUTE"
    HOUR = "HOUR"
    DAY = "DAY"
    WEEK = "WEEK"


def field_value(field: pa.Field, key: str) -> str | None:
    """Returns a value in the metadata of a field, or None."""
    value = (field.metadata or {}).get(key.encode())
    return None if value is None else value.decode()


def with_field_value(field: pa.Field, key: str, value: str) -> pa.Field:
    """Returns a field with a value in its metadata."""
    return field.with_metadata({**(field.metadata or {}), key.encode(): value.encode()})


def with_role(field: pa.Field, role: Role) -> pa.Field:
    """Returns a field with a role."""
    return with_field_value(field, COLUMN_TYPE, role)


def with_schema_value(schema: pa.Schema, key: str, value: str | None) -> pa.Schema:
    """Returns a schema with a value in its metadata, or without it."""
    metadata = {k: v for k, v in (schema.metadata or {}).items() if k != key.encode()}
    if value is not None:
        metadata[key.encode()] = value.encode()
    return schema.with_metadata(metadata or None)


def schema_value(schema: pa.Schema, key: str) -> str | None:
    """Returns a value in the metadata of a schema, or None."""
    value = (schema.metadata or {}).get(key.encode())
    return None if value is None else value.decode()


def with_time(schema: pa.Schema, name: str) -> pa.Schema:
    """Returns a schema with a time column. Raises HandlerError."""
    is_time = pa.types.is_timestamp
    return _with_column(schema, name, Role.TIME, TIME_COLUMN, is_time, type_number=18)


def with_measurement(schema: pa.Schema, name: str) -> pa.Schema:
    """Returns a schema with a measurement column. Raises HandlerError."""
    is_text = pa.types.is_string
    return _with_column(schema, name, Role.MEASUREMENT, MEASUREMENT_COLUMN, is_text, type_number=13)


def _with_column(
    schema: pa.Schema,
    name: str,
    role: Role,
    key: str,
    fits: Callable[[pa.DataType], bool],
    *,
    type_number: int,
) -> pa.Schema:
    """Returns a schema with a column of a role. `type_number` is Arrow's number of its type."""
    index = schema.get_field_index(name)
    if index < 0:
        raise HandlerError.missing(f"No such column to set {key} metadata: {name}")
    if not fits(schema.field(index).type):
        raise HandlerError.invalid(f"Column {name} must have {type_number} arrow type")
    schema = schema.set(index, with_role(schema.field(index), role))
    return with_schema_value(schema, key, name)


def time_column(schema: pa.Schema) -> str:
    """Returns the name of the time column. Raises HandlerError without one."""
    if not schema.metadata:
        raise HandlerError.invalid("RecordBatch has no metadata")
    name = schema_value(schema, TIME_COLUMN)
    if name is None:
        raise HandlerError.missing(f"RecordBatch's metadata has no key {TIME_COLUMN}")
    return name


def measurement_column(schema: pa.Schema) -> str | None:
    """Returns the name of the measurement column, or None."""
    return schema_value(schema, MEASUREMENT_COLUMN)


def group_of(schema: pa.Schema) -> dict[str, str | None]:
    """Returns the group of a batch, ordered by the names of its columns."""
    text = schema_value(schema, GROUP)
    return dict(json.loads(text)) if text else {}


def group_key(schema: pa.Schema) -> str:
    """Returns the identity of a group: equal for batches of one group, empty without a group."""
    return schema_value(schema, GROUP) or ""


def with_group(schema: pa.Schema, group: Group) -> pa.Schema:
    """Returns a schema with a group, or without one if `group` is empty."""
    pairs = sorted(group.items(), key=lambda pair: pair[0].encode())
    return with_schema_value(schema, GROUP, json.dumps(pairs) if pairs else None)


def with_group_of(rows: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """Returns rows with the group of the first row, by the columns `names`."""
    group = with_group(rows.schema, first_values(rows, names))
    return rows.replace_schema_metadata(group.metadata)


def first_values(batch: pa.RecordBatch, names: Iterable[str]) -> dict[str, str | None]:
    """Returns the values of columns in the first row as texts. Missing columns are left out."""
    found = {name: batch.schema.get_field_index(name) for name in names}
    return {name: text_of(batch.column(i)[0]) for name, i in found.items() if i >= 0}


def text_of(value: pa.Scalar) -> str | None:
    """Returns a value as the text of a group; a time as the integer of its unit."""
    if not value.is_valid:
        return None
    if pa.types.is_string(value.type):
        return str(value)
    if pa.types.is_timestamp(value.type) or pa.types.is_duration(value.type):
        return str(value.value)
    if pa.types.is_floating(value.type) and value.as_py() == 0:
        return "0"
    text: str = pc.cast(value, pa.string()).as_py()
    return text
