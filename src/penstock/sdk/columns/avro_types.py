"""Avro types of columns, and columns of Avro types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.avro_schemas import RECORDS, TIMES, named_types, records_of
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.schema_errors import invalid_schema
from penstock.sdk.columns.type_names import is_list, sql_name

_TYPES = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
    "enum": pa.string(), "fixed": pa.binary(),
}  # fmt: skip
_CONNECT = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros",
    "io.debezium.time.NanoTimestamp": "timestamp-nanos",
}
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
        _arrow_type(record, named_types(datum), (), "", type_) for _, record in records_of(datum)
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
    if kind in RECORDS:
        return _struct_type(datum, named, within, declared)
    if kind == "array":
        item = _arrow_field(datum["items"], named, within, name, _item_of(declared))
        return pa.list_(item.with_name("element"))
    if kind == "map":
        item = _arrow_field(datum["values"], named, within, name, _item_of(declared))
        return pa.map_(pa.string(), item.with_name("value"))
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal_type(datum, name)
    if logical in TIMES:
        return TIMES[logical]
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
        return kind in (*RECORDS, "array", "map")
    return _is_complex(kind, named)


def _text_field(name: str) -> pa.Field:
    """Returns a STRING field with the text of strings, and the JSON text of other values."""
    return pa.field(name, pa.string(), metadata=_TEXT)


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """Returns the Avro record of columns. Raises PlanError for a type without an Avro type."""
    from fastavro import parse_schema

    parsed: Any = parse_schema(_record(list(schema), "row"))
    return dict(parsed)


class _NoAvroType(PlanError):
    """A field, which `path` leads to from its column, whose type Avro does not have."""

    def __init__(self, type_: pa.DataType, *path: str) -> None:
        super().__init__(
            f'column "{".".join(path)}": {sql_name(type_)} has no Avro type',
            code="unsupported-type", hint="Convert the column in a transform, or drop it.",
        )  # fmt: skip
        self.type, self.path = type_, path


def _record(fields: list[pa.Field], name: str) -> dict[str, Any]:
    avro_fields = []
    for field in fields:
        try:
            datum = _avro_field(field, f"{name}_{field.name}")
        except _NoAvroType as error:
            raise _NoAvroType(error.type, field.name, *error.path) from None
        avro_field = {"name": field.name, "type": datum}
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
        raise _NoAvroType(type_)
    return _NAMES[type_]
