"""Mark of JSON text: STRING fields whose values are JSON, as VARIANT is outside of Spark."""

from __future__ import annotations

import pyarrow as pa

from penstock.sdk.columns.type_names import sql_name

_MARK = {b"penstock.json": b"true"}


def json_field(field: pa.Field) -> pa.Field:
    """Returns a STRING field whose values are JSON text."""
    return pa.field(field.name, pa.string(), field.nullable, {**(field.metadata or {}), **_MARK})


def is_json(field: pa.Field) -> bool:
    """Returns whether the values of a field are JSON text."""
    return bool(field.metadata) and _MARK.items() <= field.metadata.items()


def column_type(field: pa.Field) -> str:
    """Returns the name of the type of a column in Spark SQL."""
    return "VARIANT" if is_json(field) else sql_name(field.type)


def has_json(field: pa.Field) -> bool:
    """Returns whether a field is JSON text or contains it."""
    type_ = field.type
    inner = (type_.field(index) for index in range(type_.num_fields))
    return is_json(field) or any(has_json(each) for each in inner)
