"""The columns of points: the type of each field, and checks of the options."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.connectors.http.influxdb.config import FieldType, InfluxdbSinkConfig, PointField
from penstock.connectors.http.influxdb.texts import is_unwritable, is_unwritable_measurement
from penstock.core.errors import OptionError
from penstock.sdk.columns.checks import check_column

_RESERVED = {"tag": frozenset({"time", "_field", "_measurement"}), "field": frozenset({"time"})}


def _is_text(type_: pa.DataType) -> bool:
    is_binary = pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    return not (pa.types.is_nested(type_) or is_binary)


def _is_number(type_: pa.DataType) -> bool:
    return any(
        is_kind(type_)
        for is_kind in (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    )


def _is_time(type_: pa.DataType) -> bool:
    return any(
        is_kind(type_) for is_kind in (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)
    )


_ACCEPTED: dict[FieldType, Callable[[pa.DataType], bool]] = {
    "float": _is_number,
    "integer": pa.types.is_integer,
    "unsigned": pa.types.is_integer,
    "boolean": pa.types.is_boolean,
    "string": _is_text,
}
"""The types of the columns of each type of field."""


def fields_of(config: InfluxdbSinkConfig, columns: pa.Schema) -> dict[str, PointField]:
    """Returns the fields of a point: as declared, or all columns that no other option names."""
    if config.fields:
        return dict(config.fields)
    named = {*config.tags.values(), *config.measurement.columns, config.timestamp}
    return {name: PointField(column=name) for name in columns.names if name not in named}


def field_type(field: PointField, type_: pa.DataType) -> FieldType | None:
    """Returns the type of a field: as declared, or that of its column. None for other columns.

    A DECIMAL has no type of its own: a float would round it.
    """
    if field.type is not None or pa.types.is_decimal(type_):
        return field.type
    names: tuple[FieldType, ...] = ("boolean", "integer", "float", "string")
    return next((name for name in names if _ACCEPTED[name](type_)), None)


def check_columns(config: InfluxdbSinkConfig, columns: pa.Schema) -> Iterator[OptionError]:
    """Yields the errors of options that do not fit the columns."""
    yield from config.measurement.check(columns, "measurement")
    name = config.measurement.constant
    if name is not None and (not name or is_unwritable_measurement(name)):
        yield OptionError.of(
            "measurement", message=f"{name!r} cannot be the name of a measurement in InfluxDB",
            hint="Use another name.",
        )  # fmt: skip
    for name, column in config.tags.items():
        yield from _check_name("tag", name, "tags", name)
        hint = "Use a column of texts, numbers or times."
        yield from check_column(column, columns, "tags", name, accepts=_is_text, expected=hint)
    if config.timestamp is not None:
        hint = "Use a TIMESTAMP, a DATE or an integer."
        yield from check_column(
            config.timestamp, columns, "timestamp", accepts=_is_time, expected=hint
        )
    fields = fields_of(config, columns)
    if not fields:
        yield OptionError.of(
            "measurement",
            message="a point needs a field, and all columns are tags, the measurement or the time",
            code="missing-option", hint="List columns in fields.",
        )  # fmt: skip
    for name, field in fields.items():
        yield from _check_field(config, name, field, columns)


def _check_field(
    config: InfluxdbSinkConfig, name: str, field: PointField, columns: pa.Schema
) -> Iterator[OptionError]:
    option = ("fields", name) if config.fields else ("measurement",)
    yield from _check_name("field", name, *option)
    if name in config.tags:
        hint = "Give the field another name, as in NAME: COLUMN."
        yield OptionError.of(*option, message=f'"{name}" is a tag and a field', hint=hint)

    def is_accepted(type_: pa.DataType) -> bool:
        known = field_type(field, type_)
        return known is not None and _ACCEPTED[known](type_)

    hint = "Set the type of the field: float (64 bits) or string."
    if field.type is not None:
        hint = f"Use a column whose values fit into a field of type {field.type}."
    elif field.column in columns.names and not _is_number(columns.field(field.column).type):
        hint = "List the fields in fields, or convert the column in a transform."
    yield from check_column(field.column, columns, *option, accepts=is_accepted, expected=hint)


def _check_name(kind: str, name: str, *option: str) -> Iterator[OptionError]:
    if not name or name in _RESERVED[kind] or is_unwritable(name):
        yield OptionError.of(
            *option, message=f'"{name}" cannot be the name of a {kind} in InfluxDB',
            hint="Use another name, as in NAME: COLUMN.",
        )  # fmt: skip
