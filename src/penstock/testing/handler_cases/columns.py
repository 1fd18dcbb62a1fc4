"""Batches of cases: columns of values with roles, as objects of JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.handlers.metadata import (
    COLUMN_TYPE,
    MEASUREMENT_COLUMN,
    TIME_COLUMN,
    TIME_UNIT,
    Role,
    TimeUnit,
    field_value,
    group_of,
    with_field_value,
    with_group,
    with_role,
    with_schema_value,
)
from penstock.testing.handler_cases.place import Place

BATCH_KEYS = ("columns", "time", "measurement", "group", "time_units", "column_types")
COLUMN_KEYS = ("name", "type", "values")
_TYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double",
    "string", "bool", "null", "date32[day]",
    *(f"{kind}[{unit}]" for kind in ("timestamp", "duration") for unit in ("s", "ms", "us", "ns")),
)  # fmt: skip
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]")
NO_ROLE = "-"
_MAX_FLOAT = 2**1023


def unknown_keys(found: Mapping[str, Any], known: Sequence[str], place: Place) -> list[SpecError]:
    """Returns the errors of the keys of an object that are not known."""
    return [
        place.at(key).error(
            f'unknown key "{key}"', code="unknown-key", hint=did_you_mean(key, known), of_key=True
        )
        for key in found
        if key not in known
    ]


def check_keys(found: Mapping[str, Any], known: Sequence[str], place: Place) -> None:
    """Checks that an object has no other keys. Raises SpecError for the first one."""
    for error in unknown_keys(found, known, place):
        raise error


def expect(value: Any, kind: type, name: str, place: Place) -> Any:
    """Returns a value of a type. Raises SpecError."""
    if not isinstance(value, kind):
        found = type(value).__name__ if value is not None else "null"
        raise place.error(f"expected {name}, found {found}", code="wrong-type")
    return value


def read_batch(value: Mapping[str, Any], place: Place) -> pa.RecordBatch:
    """Returns the batch of an object with the keys `BATCH_KEYS`. Raises SpecError."""
    check_keys(value, BATCH_KEYS, place)
    items = expect(value.get("columns"), list, "a list of columns", place.at("columns"))
    columns = [_read_column(each, place.at("columns", i)) for i, each in enumerate(items)]
    lengths = {len(values) for _, values in columns}
    if len(lengths) > 1:
        message = f"the columns have different lengths: {', '.join(map(str, sorted(lengths)))}"
        raise place.at("columns").error(message, code="wrong-type")
    fields: dict[str, pa.Field] = {}
    for index, (field, _) in enumerate(columns):
        if field.name in fields:
            where = place.at("columns", index, "name")
            raise where.error(f'two columns are called "{field.name}"', code="duplicate-column")
        fields[field.name] = field
    for key, known, set_value in (
        ("column_types", Role, COLUMN_TYPE), ("time_units", TimeUnit, TIME_UNIT)
    ):  # fmt: skip
        for name, word in _texts(value, key, place).items():
            where = place.at(key, name)
            if name not in fields:
                hint = did_you_mean(name, fields)
                raise where.error(f'unknown column "{name}"', code="unknown-column", hint=hint)
            if word not in list(known):
                hint = did_you_mean(word, known)
                raise where.error(f'unknown value "{word}"', code="invalid-value", hint=hint)
            fields[name] = with_field_value(fields[name], set_value, word)
    schema = pa.schema([fields[field.name] for field, _ in columns])
    schema = _with_roles(schema, value, place)
    return pa.RecordBatch.from_arrays([values for _, values in columns], schema=schema)


def _texts(value: Mapping[str, Any], key: str, place: Place) -> dict[str, str]:
    found = value.get(key)
    if found is None:
        return {}
    expect(found, dict, "an object of texts", place.at(key))
    return {name: expect(text, str, "a text", place.at(key, name)) for name, text in found.items()}


def _with_roles(schema: pa.Schema, value: Mapping[str, Any], place: Place) -> pa.Schema:
    """Returns a schema with the names of the time and the measurement column, and the group."""
    for key, name, role, has_type in (
        ("time", TIME_COLUMN, Role.TIME, pa.types.is_timestamp),
        ("measurement", MEASUREMENT_COLUMN, Role.MEASUREMENT, pa.types.is_string),
    ):
        if value.get(key) is None:
            continue
        column = expect(value[key], str, "the name of a column", place.at(key))
        index = schema.get_field_index(column)
        if index >= 0 and has_type(schema.field(index).type):
            schema = schema.set(index, with_role(schema.field(index), role))
        schema = with_schema_value(schema, name, column)
    return with_group(schema, _read_group(value.get("group"), place.at("group")))


def _read_group(value: Any, place: Place) -> dict[str, str | None]:
    """Returns the group of a list of pairs, or of an object."""
    if value is None:
        return {}
    pairs = list(value.items()) if isinstance(value, dict) else value
    for index, pair in enumerate(expect(pairs, list, "pairs of a column and a value", place)):
        where = place if isinstance(value, dict) else place.at(index)
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not is_pair or not isinstance(pair[0], str) or not isinstance(pair[1], str | None):
            raise where.error("expected a column and its value as texts", code="wrong-type")
    return dict(pairs)


def read_type(name: str, place: Place) -> pa.DataType:
    """Returns the type of a name of Arrow. Raises SpecError."""
    if match := _ZONED.fullmatch(name):
        return pa.timestamp(match[1], match[2])
    aliases = {"utf8": "string", "float32": "float", "float64": "double", "date32": "date32[day]"}
    if aliases.get(name, name) not in _TYPES:
        hint = did_you_mean(name, _TYPES)
        raise place.error(f'unknown type "{name}"', code="unknown-type", hint=hint)
    return pa.type_for_alias(name)


def _read_column(value: Any, place: Place) -> tuple[pa.Field, pa.Array]:
    expect(value, dict, "an object with name, type and values", place)
    check_keys(value, COLUMN_KEYS, place)
    for key in COLUMN_KEYS:
        if key not in value:
            raise place.error(f'the key "{key}" is missing', code="missing-option")
    name = expect(value["name"], str, "a text", place.at("name"))
    kind = read_type(expect(value["type"], str, "a text", place.at("type")), place.at("type"))
    items = expect(value["values"], list, "a list of values", place.at("values"))
    for index, item in enumerate(items):
        if not _fits(item, kind):
            message = f"expected {_expected(kind)}, found {item!r}"
            raise place.at("values", index).error(message, code="wrong-type")
    return pa.field(name, kind), _array(items, kind)


def _is_ticks(kind: pa.DataType) -> bool:
    ticks: bool = (
        pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind)
    )
    return ticks


def _fits(item: Any, kind: pa.DataType) -> bool:
    if item is None:
        return True
    if pa.types.is_string(kind):
        return isinstance(item, str)
    if pa.types.is_boolean(kind) or isinstance(item, bool):
        return bool(pa.types.is_boolean(kind)) and isinstance(item, bool)
    if pa.types.is_floating(kind):
        return isinstance(item, float) or (isinstance(item, int) and abs(item) < _MAX_FLOAT)
    if not isinstance(item, int) or pa.types.is_null(kind):
        return False
    is_unsigned = bool(pa.types.is_unsigned_integer(kind))
    bits = int(kind.bit_width) - (not is_unsigned)
    lowest: int = 0 if is_unsigned else -(2**bits)
    return bool(lowest <= item < 2**bits)


def _expected(kind: pa.DataType) -> str:
    if _is_ticks(kind):
        return f"an integer for {kind}, or null"
    return f"a value of type {kind}, or null"


def _array(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind):
        return pa.array([None if item is None else float(item) for item in items], kind)
    if _is_ticks(kind):
        storage = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        return pa.array(items, storage).cast(kind)
    return pa.array(items, kind)


def write_batch(batch: pa.RecordBatch, number: str) -> dict[str, Any]:
    """Returns the object of an output batch: its columns with their roles, its group, its rows."""
    group = group_of(batch.schema)
    fields = [
        {
            "name": field.name,
            "type": str(field.type),
            "column_type": field_value(field, COLUMN_TYPE) or NO_ROLE,
        }
        for field in batch.schema
    ]
    values = [_values(column) for column in batch.columns]
    return {
        "call.batch": number,
        "columns": fields,
        "group": {name: "null" if v is None else v for name, v in group.items()} or None,
        "rows": [list(row) for row in zip(*values, strict=True)],
    }


def _values(column: pa.Array) -> list[Any]:
    if _is_ticks(column.type):
        storage = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        column = pc.cast(column, storage)
    values: list[Any] = column.to_pylist()
    return values
