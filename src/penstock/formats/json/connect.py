"""The JSON wrapper of Kafka Connect: the schema of a record, and the record as its payload."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.json.decimals import Forms
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.type_names import is_list

Schema = dict[str, Any]


_LEAVES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int8"),
    (pa.types.is_int16, "int16"),
    (pa.types.is_int32, "int32"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_binary, "bytes"),
)
"""The types that JSON values of the format `json` have. Other values are text."""
_TIMES = {
    "millis": "org.apache.kafka.connect.data.Timestamp",
    "micros": "io.debezium.time.MicroTimestamp",
}
"""The logical types of numbers of times."""
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def connect_schema(columns: pa.Schema, forms: Forms) -> Schema:
    """Returns the schema of records with these columns."""
    fields = [_named(field, forms) for field in columns]
    return {"type": "struct", "optional": False, "fields": fields}


def _named(field: pa.Field, forms: Forms) -> Schema:
    type_ = {"type": "string"} if is_json(field) else _schema(field.type, forms)
    return {**type_, "optional": field.nullable, "field": field.name}


def _schema(type_: pa.DataType, forms: Forms) -> Schema:
    if pa.types.is_struct(type_):
        return {"type": "struct", "fields": [_named(field, forms) for field in type_]}
    if is_list(type_):
        return {"type": "array", "items": {**_schema(type_.value_type, forms), "optional": True}}
    if pa.types.is_map(type_):
        values = {**_schema(type_.item_type, forms), "optional": True}
        keys = {"type": "string", "optional": False}
        return {"type": "map", "keys": keys, "values": values}
    if pa.types.is_timestamp(type_) and forms.times != "iso":
        name = _TIMES.get(forms.times)
        return {"type": "int64", **({"name": name, "version": 1} if name else {})}
    if pa.types.is_decimal(type_) and forms.decimals == "bytes":
        parameters = {"scale": str(type_.scale), "connect.decimal.precision": str(type_.precision)}
        return {"type": "bytes", "name": _DECIMAL, "version": 1, "parameters": parameters}
    if pa.types.is_decimal(type_):
        return {"type": "double" if forms.decimals == "number" else "string"}
    return {"type": next((name for test, name in _LEAVES if test(type_)), "string")}


def wrap(payloads: pa.BinaryArray, columns: pa.Schema, forms: Forms) -> pa.BinaryArray:
    """Returns JSON objects of these columns in their wrapper."""
    schema = json.dumps(connect_schema(columns, forms), separators=(",", ":")).encode()
    before, after = b'{"schema":' + schema + b',"payload":', b"}"
    return pc.binary_join_element_wise(
        pa.scalar(before), payloads, pa.scalar(after), pa.scalar(b"")
    )


def wrapped_columns(columns: pa.Schema, *, has_schema: bool) -> pa.Schema:
    """Returns the columns of wrapped records of these columns, with their schema as JSON text."""
    fields = [pa.field("payload", pa.struct(list(columns)), nullable=False)]
    fields += [json_field(pa.field("schema", pa.string()))] if has_schema else []
    return pa.schema(fields)


def unwrap(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Returns the payloads of wrapped records as rows of these columns."""
    payload = rows.column("payload")
    if not len(columns):
        return rows.select([])
    arrays = [pc.struct_field(payload, [index]) for index in range(len(columns))]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def payload_of(record: Any) -> Iterator[Any]:
    """Yields the payload of a wrapped record; none of another value."""
    if isinstance(record, dict) and "payload" in record:
        yield record["payload"]


def in_whole_millis(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows with whole milliseconds in place of times, as in Kafka Connect."""
    schema = pa.schema([field.with_type(_with_millis(field.type)) for field in rows.schema])
    columns = [
        rebuild(column, type_, _to_millis)
        for column, type_ in zip(rows.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _with_millis(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_with_millis(field.type)) for field in type_])
    if pa.types.is_list(type_):
        item = type_.value_field
        return pa.list_(item.with_type(_with_millis(item.type)))
    if pa.types.is_map(type_):
        item = type_.item_field
        return pa.map_(_with_millis(type_.key_type), item.with_type(_with_millis(item.type)))
    return pa.int64() if pa.types.is_timestamp(type_) else type_


def _to_millis(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_timestamp(array.type):
        return array
    whole = pc.floor_temporal(array, unit="millisecond")
    return whole.cast(pa.timestamp("ms", array.type.tz)).cast(type_)
