"""Types of Iceberg for Arrow types, and back.

Source: https://iceberg.apache.org/spec/#schemas-and-data-types
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.types import TypeMap, always, decimal_type

UTC = pa.timestamp("us", tz="UTC")


class _Types(TypeMap):
    """The types of Iceberg, whose nested types consist of others."""

    def column_type(self, field: pa.Field) -> str:
        type_ = field.type
        if is_json(field) or not pa.types.is_nested(type_):
            return super().column_type(field)
        if is_list(type_):
            return f"list<{self.column_type(type_.value_field.with_name(field.name))}>"
        if pa.types.is_map(type_):
            key = self.column_type(type_.key_field.with_name(field.name))
            return f"map<{key}, {self.column_type(type_.item_field.with_name(field.name))}>"
        if not type_.num_fields:
            return super().column_type(field)
        return f"struct<{', '.join(f'{each.name}: {self.column_type(each)}' for each in type_)}>"


TYPES = _Types(
    "Iceberg",
    declared={
        "boolean": "boolean", "int8": "int", "int16": "int", "int32": "int", "int64": "long",
        "float": "float", "double": "double", "decimal": "decimal({precision}, {scale})",
        "string": "string", "binary": "binary", "date": "date", "timestamp": "timestamptz",
        "timestamp_ntz": "timestamp", "json": "string",
    },
    read=(
        ("boolean", always(pa.bool_())), ("int", always(pa.int32())), ("long", always(pa.int64())),
        ("float", always(pa.float32())), ("double", always(pa.float64())),
        (r"decimal\((\d+), (\d+)\)", decimal_type), ("string", always(pa.string())),
        (r"binary|fixed\[\d+\]", always(pa.binary())), ("date", always(pa.date32())),
        ("timestamptz(_ns)?", always(UTC)), ("timestamp(_ns)?", always(pa.timestamp("us"))),
        ("time|uuid|unknown", always(pa.string())),
    ),
)  # fmt: skip
_STORED = {
    "time": pa.time64("us"), "uuid": pa.uuid(), "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"), "unknown": pa.null(),
}  # fmt: skip
"""The types of files that differ from those of rows, besides `fixed`."""
KEY_TYPES = (pa.types.is_floating, pa.types.is_nested)
"""Kinds of types that identifier fields of Iceberg cannot have."""


def iceberg_schema(columns: pa.Schema, key: Sequence[str] = ()) -> Any:
    """Returns the schema of a new table. The columns of the key, if possible, identify rows."""
    from pyiceberg.schema import Schema

    ids = count(1)
    can_identify = bool(key) and not any(
        is_kind(columns.field(name).type) for name in key for is_kind in KEY_TYPES
    )
    numbers = [next(ids) for _ in columns]
    fields = [
        _nested_field(number, field, ids, required=can_identify and field.name in key)
        for number, field in zip(numbers, columns, strict=True)
    ]
    identifiers = [field.field_id for field in fields if field.required]
    return Schema(*fields, identifier_field_ids=identifiers)


def iceberg_type(field: pa.Field, ids: Iterator[int]) -> Any:
    """Returns the type of a new column."""
    from pyiceberg.types import ListType, MapType, StructType

    type_ = field.type
    if is_json(field) or not pa.types.is_nested(type_):
        return _primitive(TYPES.column_type(field))
    if is_list(type_):
        number = next(ids)
        element = iceberg_type(type_.value_field, ids)
        return ListType(number, element, element_required=False)
    if pa.types.is_map(type_):
        key, value = next(ids), next(ids)
        return MapType(
            key, iceberg_type(type_.key_field, ids), value, iceberg_type(type_.item_field, ids),
            value_required=False,
        )  # fmt: skip
    numbers = [next(ids) for _ in type_]
    return StructType(
        *(
            _nested_field(number, each, ids, required=False)
            for number, each in zip(numbers, type_, strict=True)
        )
    )


def _nested_field(number: int, field: pa.Field, ids: Iterator[int], *, required: bool) -> Any:
    from pyiceberg.types import NestedField

    return NestedField(number, field.name, iceberg_type(field, ids), required=required)


def _primitive(text: str) -> Any:
    from pyiceberg.types import PrimitiveType

    return PrimitiveType.model_validate(text)


def row_field(field: Any) -> pa.Field:
    """Returns a column of rows for a column of a table. Raises PlanError for an unknown type."""
    return pa.field(field.name, _row_type(field.field_type, field.name), field.optional)


def row_schema(fields: Sequence[Any]) -> pa.Schema:
    """Returns columns of rows for columns of a table."""
    return pa.schema([row_field(field) for field in fields])


def _row_type(type_: Any, column: str) -> pa.DataType:
    if type_.is_struct:
        return pa.struct(
            [
                pa.field(each.name, _row_type(each.field_type, f"{column}.{each.name}"))
                for each in type_.fields
            ]
        )
    if hasattr(type_, "element_type"):
        return pa.list_(_row_type(type_.element_type, column))
    if hasattr(type_, "key_type"):
        return pa.map_(_row_type(type_.key_type, column), _row_type(type_.value_type, column))
    found = TYPES.field(column, str(type_))
    if found is None:
        raise PlanError(
            f'column "{column}" is {type_}, which has no counterpart in Spark',
            code="unsupported-type",
            hint="Drop the column, or read a copy of the table without it.",
        )
    return found.type


def file_field(field: Any) -> pa.Field:
    """Returns a column of a data file, with its ID. Values may be null, as in deleted rows."""
    metadata = {b"PARQUET:field_id": str(field.field_id).encode()}
    return pa.field(field.name, file_type(field.field_type), True, metadata)


def file_type(type_: Any) -> pa.DataType:
    """Returns the type of the values of a column in data files."""
    if type_.is_struct:
        return pa.struct([file_field(each) for each in type_.fields])
    if hasattr(type_, "element_type"):
        return pa.list_(file_field(type_.element_field))
    if hasattr(type_, "key_type"):
        return pa.map_(
            file_field(type_.key_field).with_nullable(False), file_field(type_.value_field)
        )
    text = str(type_)
    if text.startswith("fixed"):
        return pa.binary(len(type_))
    return _STORED.get(text) or _row_type(type_, "")


def accepts(written: pa.Field, target: pa.Field, stored: Any) -> bool:
    """Returns whether a column of a table stores the values of a column of rows as they are.

    A text that is not a UUID or a time, and bytes of another length, are errors of their rows.
    """
    if is_json(written):
        return bool(pa.types.is_string(target.type))
    return bool(written.type == target.type or _fits(written.type, stored))


def _fits(type_: pa.DataType, stored: Any) -> bool:
    """Returns whether values of a type can be stored, with the names of fields in any case."""
    if pa.types.is_struct(type_) and stored.is_struct:
        fields = {field.name.lower(): field.field_type for field in stored.fields}
        return {each.name.lower() for each in type_} == {*fields} and all(
            _fits(each.type, fields[each.name.lower()]) for each in type_
        )
    if is_list(type_) and hasattr(stored, "element_type"):
        return _fits(type_.value_type, stored.element_type)
    if pa.types.is_map(type_) and hasattr(stored, "key_type"):
        return _fits(type_.key_type, stored.key_type) and _fits(type_.item_type, stored.value_type)
    if pa.types.is_nested(type_) or not stored.is_primitive:
        return False
    target = TYPES.field("", str(stored))
    found = None if target is None else target.type
    return bool(type_ == found or (type_ in (pa.int8(), pa.int16()) and found == pa.int32()))
