"""Types of Delta Lake for Arrow types, and back.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#schema-serialization-format
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.database.types import TypeMap, kind_of

TYPES = TypeMap(
    "Delta Lake",
    declared={
        "boolean": "boolean", "int8": "byte", "int16": "short", "int32": "integer",
        "int64": "long", "float": "float", "double": "double",
        "decimal": "decimal({precision},{scale})", "string": "string", "binary": "binary",
        "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
        "json": "string",
    },
    read=(),
)  # fmt: skip
_PARTITION_KINDS = {
    "boolean", "int8", "int16", "int32", "int64", "decimal", "string", "date", "timestamp",
    "timestamp_ntz",
}  # fmt: skip


def is_partition_type(type_: pa.DataType) -> bool:
    """Returns whether the values of a type can be partition values."""
    return kind_of(pa.field("", type_)) in _PARTITION_KINDS


def delta_schema(columns: pa.Schema) -> Any:
    """Returns the schema of a new table, whose columns are nullable."""
    from deltalake import Schema

    fields = [pa.field(field.name, stored_type(field)) for field in columns]
    return Schema.from_arrow(pa.schema(fields))


def stored_type(field: pa.Field) -> pa.DataType:
    """Returns the Arrow type of a column of a table for a column of rows."""
    return field.type if not is_json(field) else pa.string()


def arrow_schema(schema: Any) -> pa.Schema:
    """Returns the columns of a table. Raises PlanError for an unsupported type."""
    try:
        return pa.schema(schema.to_arrow())
    except Exception as error:
        raise PlanError(
            f"the table has a column of an unsupported type: {error}", code="unsupported-type"
        ) from error


def accepts(written: pa.Field, target: pa.Field) -> bool:
    """Returns whether a column of a table stores the values of a column of rows as they are."""
    new = arrow_schema(delta_schema(pa.schema([written])))
    return bool(new.field(0).type == target.type)


def field_properties(schema: Any) -> Mapping[str, str]:
    """Returns the column of each property of the columns of a table, such as a generated one."""
    return {key: field.name for field in schema.fields for key in field.metadata or {}}
