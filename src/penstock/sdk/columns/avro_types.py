"""Conversion between Avro and Arrow: types and values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.avro_json import json_text
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.conversion import cast
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.schema_errors import invalid_schema
from penstock.sdk.columns.type_names import is_list

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
_CONNECT = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros",
    "io.debezium.time.NanoTimestamp": "timestamp-nanos",
}
_KINDS = ("array", "map", "enum")
_RECORDS = ("record", "error")
_MAX_PRECISION = 38
_TEXT = {b"penstock.avro": b"text"}
_HINT = "Declare the columns in schema: without it, or with STRING or VARIANT for its JSON text."
_NAMES = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int",
    pa.int64(): "long", pa.float32(): "float", pa.float64(): "double", pa.binary(): "bytes",
    pa.string(): "string", pa.null(): "null",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip


@invalid_schema("Avro schema")
def arrow_schema(datum: Any, declared: pa.Schema | None = None) -> pa.Schema:
    """Returns the columns of an Avro record, or of the records of a union.

    With `declared` only its columns, and the fields of their structs; a declared STRING or VARIANT
    has the JSON text of a union, a record, an array or a map. Raises PlanError for a type without
    an Arrow type.
    """
    type_ = None if declared is None else pa.struct(list(declared))
    records = [
        _arrow_type(record, _named_types(datum), (), "", type_) for _, record in records_of(datum)
    ]
    fields: dict[str, pa.Field] = {}
    in_all = set.intersection(*({field.name for field in record} for record in records))
    for field in (field for record in records for field in record):
        other = fields.setdefault(field.name, field)
        if other.type != field.type:
            raise PlanError(
                f'the records of the union have several types of "{field.name}"',
                code="unsupported-type",
                hint=_HINT,
            )
        if field.nullable or field.name not in in_all:
            fields[field.name] = other.with_nullable(True)
    return pa.schema(list(fields.values()))


@invalid_schema("Avro schema")
def records_of(datum: Any) -> list[tuple[str, Any]]:
    """Returns the full names and schemas of a record, or of the records of a union, in order.

    Raises PlanError for other types.
    """
    named = _named_types(datum)
    branches = datum if isinstance(datum, list) else [datum]
    records = [named.get(each, each) if isinstance(each, str) else each for each in branches]
    if not all(isinstance(each, dict) and each["type"] in _RECORDS for each in records):
        raise PlanError("the Avro schema is not a record", code="unsupported-type")
    return [(each["name"], each) for each in records]


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
    branches = datum if isinstance(datum, list) else [datum]
    named: dict[str, Any] = {}
    for branch in branches:
        named |= branch.get("__named_schemas", {}) if isinstance(branch, dict) else {}
    return named


def _arrow_field(
    datum: Any, named: dict[str, Any], within: tuple[str, ...], name: str = "",
    declared: pa.Field | None = None,
) -> pa.Field:  # fmt: skip
    if declared is not None and pa.types.is_string(declared.type) and _is_complex(datum, named):
        return json_field(pa.field(name, declared.type)) if is_json(declared) else _text_field(name)
    if isinstance(datum, list):
        types = [branch for branch in datum if branch != "null"]
        if len(types) != 1:
            raise PlanError(
                f'a union of {len(types)} types (Avro field "{name}")',
                code="unsupported-type",
                hint=_HINT,
            )
        field = _arrow_field(types[0], named, within, name, declared)
        return field.with_nullable(field.nullable or len(types) < len(datum))
    if isinstance(datum, str):
        if datum in _TYPES:
            return pa.field(name, _TYPES[datum], datum == "null")
        if datum not in named or datum in within:
            raise PlanError(
                f'the Avro type "{datum}" is recursive', code="unsupported-type", hint=_HINT
            )
        return _arrow_field(named[datum], named, within, name, declared)
    type_ = None if declared is None else declared.type
    return pa.field(name, _arrow_type(datum, named, within, name, type_), nullable=False)


def _arrow_type(
    datum: dict[str, Any], named: dict[str, Any], within: tuple[str, ...], name: str,
    declared: pa.DataType | None = None,
) -> pa.DataType:  # fmt: skip
    kind, logical = datum["type"], datum.get("logicalType") or _connect_type(datum, declared)
    if kind in _RECORDS:
        return _struct_type(datum, named, within, declared)
    if kind == "array":
        item = _arrow_field(datum["items"], named, within, name, _item_of(declared))
        return pa.list_(item.with_name("element"))
    if kind == "map":
        item = _arrow_field(datum["values"], named, within, name, _item_of(declared))
        return pa.map_(pa.string(), item.with_name("value"))
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal_type(datum, name)
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    return (
        _TYPES[kind]
        if isinstance(kind, str) and kind in _TYPES
        else _arrow_field(kind, named, within, name).type
    )


def _connect_type(datum: dict[str, Any], declared: pa.DataType | None) -> str | None:
    """Returns the logical type of a number by its name in Kafka Connect.

    A declared integer has the number.
    """
    is_number = declared is not None and pa.types.is_integer(declared)
    return None if is_number else _CONNECT.get(str(datum.get("connect.name")))


def _struct_type(
    datum: dict[str, Any], named: dict[str, Any], within: tuple[str, ...],
    declared: pa.DataType | None,
) -> pa.DataType:  # fmt: skip
    """Returns the type of a record; with a declared struct only its fields, also recursive ones."""
    if declared is None or not pa.types.is_struct(declared):
        inside = (*within, datum["name"])
        fields = [(field, None) for field in datum["fields"]]
    else:
        inside = ()
        by_name = {field.name.casefold(): field for field in declared}
        fields = [
            (field, by_name[field["name"].casefold()])
            for field in datum["fields"]
            if field["name"].casefold() in by_name
        ]
    return pa.struct(
        [_arrow_field(field["type"], named, inside, field["name"], each) for field, each in fields]
    )


def _item_of(declared: pa.DataType | None) -> pa.Field | None:
    """Returns the declared elements of an array, or values of a map; None if they are not known."""
    if declared is not None and is_list(declared):
        return declared.value_field
    return declared.item_field if declared is not None and pa.types.is_map(declared) else None


def _decimal_type(datum: dict[str, Any], name: str) -> pa.DataType:
    precision, scale = datum["precision"], datum.get("scale", 0)
    if not 0 < precision <= _MAX_PRECISION or scale > precision:
        raise PlanError(
            f'a decimal of {precision} digits (Avro field "{name}")', code="unsupported-type",
            hint=_HINT,
        )  # fmt: skip
    return pa.decimal128(precision, scale)


def _is_complex(datum: Any, named: dict[str, Any]) -> bool:
    """Returns whether a type is a union of several types, or has values within its values."""
    if isinstance(datum, str):
        return datum in named and _is_complex(named[datum], named)
    if isinstance(datum, list):
        types = [branch for branch in datum if branch != "null"]
        return len(types) > 1 or any(_is_complex(branch, named) for branch in types)
    kind = datum["type"]
    if isinstance(kind, str):
        return kind in (*_RECORDS, "array", "map")
    return _is_complex(kind, named)


def _text_field(name: str) -> pa.Field:
    """Returns a STRING field with the text of strings, and the JSON text of other values."""
    return pa.field(name, pa.string(), metadata=_TEXT)


@invalid_schema("Avro schema")
def check_arrays(datum: Any) -> None:
    """Raises PlanError for an array of values without bytes, anywhere in a parsed schema.

    A payload of a few bytes could hold any number of such values.
    """
    _check_arrays(datum, _named_types(datum), "", set())


def _check_arrays(datum: Any, named: dict[str, Any], name: str, seen: set[str]) -> None:
    for branch in datum if isinstance(datum, list) else ():
        _check_arrays(branch, named, name, seen)
    if not isinstance(datum, dict) or datum.get("name") in seen:
        return
    if datum["type"] in _RECORDS:
        seen.add(datum["name"])
        for field in datum["fields"]:
            _check_arrays(field["type"], named, field["name"], seen)
        return
    if datum["type"] == "array" and _has_no_bytes(datum["items"], named, set()):
        raise PlanError(
            f'an array of values without bytes (Avro field "{name}")', code="unsupported-type"
        )
    for key in ("type", "items", "values"):
        _check_arrays(datum.get(key), named, name, seen)


@invalid_schema("Avro schema")
def is_recursive(datum: Any) -> bool:
    """Returns whether a parsed schema has a record within itself."""
    return _contains_itself(datum, _named_types(datum), (), set())


def _contains_itself(
    datum: Any, named: dict[str, Any], within: tuple[str, ...], done: set[str]
) -> bool:
    """Returns whether a type has a record within itself. `done` are records that have none."""
    if isinstance(datum, str):
        datum = named.get(datum)
    if isinstance(datum, list):
        return any(_contains_itself(branch, named, within, done) for branch in datum)
    if not isinstance(datum, dict) or datum.get("name") in done:
        return False
    if datum["type"] not in _RECORDS:
        parts = [datum.get(key) for key in ("type", "items", "values")]
        return any(_contains_itself(part, named, within, done) for part in parts)
    name = datum["name"]
    types = (field["type"] for field in datum["fields"])
    inside = (*within, name)
    if name in within or any(_contains_itself(type_, named, inside, done) for type_ in types):
        return True
    done.add(name)
    return False


def _has_no_bytes(datum: Any, named: dict[str, Any], sized: set[str]) -> bool:
    """Returns whether values have no bytes. `sized` are records that have some, or are checked."""
    if isinstance(datum, str):
        return datum == "null" or (datum in named and _has_no_bytes(named[datum], named, sized))
    if isinstance(datum, list) or datum["type"] in _KINDS or datum.get("name") in sized:
        return False
    if datum["type"] in _RECORDS:
        sized.add(datum["name"])
        empty = all(_has_no_bytes(field["type"], named, sized) for field in datum["fields"])
        sized -= {datum["name"]} if empty else set()
        return empty
    if datum["type"] == "fixed":
        return bool(datum["size"] == 0)
    return _has_no_bytes(datum["type"], named, sized)


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


def to_arrow(values: list[Any], field: pa.Field) -> pa.Array:
    """Converts values that fastavro read with a schema of `without_times`."""
    type_ = field.type
    if pa.types.is_nested(type_) or pa.types.is_string(type_):
        values = [_from_datum(value, field) for value in values]
    return pa.array(values, type_)


def _from_datum(value: Any, field: pa.Field) -> Any:
    type_ = field.type
    if value is None:
        return None
    if is_json(field):
        return json_text(value)
    if pa.types.is_map(type_):
        return [(key, _from_datum(item, type_.item_field)) for key, item in value.items()]
    if pa.types.is_list(type_):
        return [_from_datum(item, type_.value_field) for item in value]
    if pa.types.is_struct(type_):
        return {each.name: _from_datum(value.get(each.name), each) for each in type_}
    if not pa.types.is_string(type_):
        return value
    is_text = field.metadata is None or isinstance(value, str)
    return str(value) if is_text else json_text(value)


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
