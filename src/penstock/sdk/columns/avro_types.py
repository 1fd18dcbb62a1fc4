"""Conversion between Avro and Arrow: types and values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.conversion import cast

_TYPES = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
    "enum": pa.string(), "fixed": pa.binary(),
}  # fmt: skip
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
}
_KINDS = ("array", "map", "enum")
_NAMES = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int",
    pa.int64(): "long", pa.float32(): "float", pa.float64(): "double", pa.binary(): "bytes",
    pa.string(): "string", pa.null(): "null",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip


def arrow_schema(datum: Any) -> pa.Schema:
    """Returns the columns of an Avro record. Raises PlanError for a type without an Arrow type."""
    type_ = _arrow_field(datum, _named_types(datum), ()).type
    if not pa.types.is_struct(type_):
        raise PlanError("the Avro schema is not a record", code="unsupported-type")
    return pa.schema(list(type_))


def without_times(datum: Any) -> Any:
    """Returns the schema with times as numbers, for conversion to Arrow without a copy."""
    if isinstance(datum, list):
        return [without_times(branch) for branch in datum]
    if not isinstance(datum, dict):
        return datum
    is_time = datum.get("logicalType") in _LOGICAL
    return {
        key: without_times(value)
        for key, value in datum.items()
        if not (is_time and key == "logicalType") and not key.startswith("__")
    }


def strip_parsed_keys(datum: Any) -> Any:
    """Returns the schema without the keys that fastavro adds."""
    if isinstance(datum, list):
        return [strip_parsed_keys(branch) for branch in datum]
    if not isinstance(datum, dict):
        return datum
    return {
        key: strip_parsed_keys(value) for key, value in datum.items() if not key.startswith("__")
    }


def _named_types(datum: Any) -> dict[str, Any]:
    return dict(datum.get("__named_schemas", {})) if isinstance(datum, dict) else {}


def _arrow_field(
    datum: Any, named: dict[str, Any], within: tuple[str, ...], name: str = ""
) -> pa.Field:
    if isinstance(datum, list):
        types = [branch for branch in datum if branch != "null"]
        if len(types) != 1:
            raise PlanError(
                f'a union of {len(types)} types (Avro field "{name}")', code="unsupported-type"
            )
        return _arrow_field(types[0], named, within, name).with_nullable(len(types) < len(datum))
    if isinstance(datum, str):
        if datum in _TYPES:
            return pa.field(name, _TYPES[datum], datum == "null")
        if datum in within or datum not in named:
            raise PlanError(f'the Avro type "{datum}" is recursive', code="unsupported-type")
        return _arrow_field(named[datum], named, within, name)
    return pa.field(name, _arrow_type(datum, named, within, name), nullable=False)


def _arrow_type(
    datum: dict[str, Any], named: dict[str, Any], within: tuple[str, ...], name: str
) -> pa.DataType:
    kind, logical = datum["type"], datum.get("logicalType")
    if kind in ("record", "error"):
        inside = (*within, datum["name"])
        named[datum["name"]] = datum
        return pa.struct(
            [_arrow_field(field["type"], named, inside, field["name"]) for field in datum["fields"]]
        )
    if kind == "array":
        item = _arrow_field(datum["items"], named, within, name)
        if _has_no_bytes(datum["items"], named):
            raise PlanError(
                f'an array of values without bytes (Avro field "{name}")', code="unsupported-type"
            )
        return pa.list_(pa.field("element", item.type, item.nullable))
    if kind == "map":
        item = _arrow_field(datum["values"], named, within, name)
        return pa.map_(pa.string(), pa.field("value", item.type, item.nullable))
    if kind in ("enum", "fixed"):
        named[datum["name"]] = datum
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return pa.decimal128(datum["precision"], datum.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    return (
        _TYPES[kind]
        if isinstance(kind, str) and kind in _TYPES
        else _arrow_field(kind, named, within, name).type
    )


def _has_no_bytes(datum: Any, named: dict[str, Any]) -> bool:
    """Returns whether a value has no bytes: then a payload could hold any number of values."""
    if isinstance(datum, str):
        return datum == "null" or (datum in named and _has_no_bytes(named[datum], named))
    if isinstance(datum, list):
        return False
    if datum["type"] in ("record", "error"):
        return all(_has_no_bytes(field["type"], named) for field in datum["fields"])
    if datum["type"] == "fixed":
        return bool(datum["size"] == 0)
    return _has_no_bytes(datum["type"], named) if datum["type"] not in _KINDS else False


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """Returns the Avro record of columns. Raises PlanError for a type without an Avro type."""
    from fastavro import parse_schema

    parsed: Any = parse_schema(_record(list(schema), "row"))
    return dict(parsed)


def _record(fields: list[pa.Field], name: str) -> dict[str, Any]:
    avro_fields = []
    for field in fields:
        avro_field = {"name": field.name, "type": _avro_field(field, f"{name}_{field.name}")}
        avro_fields.append(
            {**avro_field, "default": None} if isinstance(avro_field["type"], list) else avro_field
        )
    return {"type": "record", "name": name, "fields": avro_fields}


def _avro_field(field: pa.Field, name: str) -> Any:
    datum = _avro_type(field.type, name)
    return ["null", datum] if field.nullable and datum != "null" else datum


def _avro_type(type_: pa.DataType, name: str) -> Any:
    if pa.types.is_struct(type_):
        return _record(list(type_), name)
    if pa.types.is_list(type_):
        return {"type": "array", "items": _avro_field(type_.value_field, name)}
    if pa.types.is_map(type_) and pa.types.is_string(type_.key_type):
        return {"type": "map", "values": _avro_field(type_.item_field, name)}
    if pa.types.is_decimal(type_):
        sizes = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if type_ not in _NAMES:
        raise PlanError(f"{type_} has no Avro type", code="unsupported-type")
    return _NAMES[type_]


def to_arrow(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Converts values that fastavro read with a schema of `without_times`."""
    if pa.types.is_nested(type_):
        values = [_from_datum(value, type_) for value in values]
    elif pa.types.is_string(type_):
        values = [value if value is None else str(value) for value in values]
    return pa.array(values, type_)


def _from_datum(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type_):
        return [(key, _from_datum(item, type_.item_type)) for key, item in value.items()]
    if pa.types.is_list(type_):
        return [_from_datum(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: _from_datum(value.get(field.name), field.type) for field in type_}
    return str(value) if pa.types.is_string(type_) else value


def from_arrow(array: pa.Array) -> list[Any]:
    """Converts an array to values that fastavro writes with a schema of `without_times`."""
    numbers = rebuild(array, _number_type(array.type), _as_number)
    values: list[Any] = numbers.to_pylist()
    if not pa.types.is_nested(array.type):
        return values
    return [_to_datum(value, array.type) for value in values]


def _number_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_number_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_number_type(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, type_.item_field.with_type(_number_type(type_.item_type)))
    if pa.types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_


def _as_number(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array.view(type_) if pa.types.is_temporal(array.type) else cast(array, type_)


def _to_datum(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: _to_datum(item, type_.item_type) for key, item in value}
    if pa.types.is_list(type_):
        return [_to_datum(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: _to_datum(value.get(field.name), field.type) for field in type_}
    return value
