"""The types of fields of documents and points, from the code of their connectors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.connectors.http.influxdb.columns import field_type
from penstock.connectors.http.influxdb.config import PointField
from penstock.connectors.http.opensearch.mapping import mapping_of
from penstock.connectors.mongodb.encoding import Encoding
from penstock.connectors.mongodb.sample import infer_columns
from penstock.sdk.columns.json_mark import column_type, is_json

NOW = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
_BSON = {
    1: "double", 2: "string", 3: "object", 4: "array", 5: "binData", 8: "bool", 9: "date",
    16: "int", 18: "long", 19: "decimal",
}  # fmt: skip
"""The names of types by the byte before an element: https://bsonspec.org/spec.html."""


def mongodb(field: pa.Field) -> str:
    """Returns the type of the field of a document."""
    import bson

    if is_json(field):
        return "any"
    rows = pa.RecordBatch.from_arrays([_sample(field.type)], schema=pa.schema([field]))
    values = Encoding().values(rows, {})
    return _BSON[bson.encode({"c": values[field.name][0]})[4]]


def _sample(type_: pa.DataType) -> pa.Array:
    if pa.types.is_string(type_):
        return pa.array(["a"], type_)
    if pa.types.is_binary(type_):
        return pa.array([b"a"], type_)
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        return pa.array([[]], type_)
    if pa.types.is_struct(type_):
        return pa.array([{}], type_)
    if pa.types.is_decimal(type_):
        return pa.array([Decimal(1)], type_)
    if pa.types.is_timestamp(type_):
        return pa.array([NOW], type_)
    return pa.array([1], pa.int32() if pa.types.is_date(type_) else pa.int64()).cast(type_)


def opensearch(field: pa.Field) -> str:
    """Returns the type of the field of a new index."""
    mapping = mapping_of(pa.schema([field]), "iso", "number")["properties"].get(field.name)
    if mapping is None:
        return "of the first value"
    if "properties" in mapping:
        return "object"
    kinds = [mapping["type"], *(each["type"] for each in mapping.get("fields", {}).values())]
    return ", ".join(kinds)


def influxdb(field: pa.Field) -> str:
    """Returns the type of the field of a point; empty for a column without one."""
    return field_type(PointField(column=field.name), field.type) or ""


WRITTEN: Mapping[str, Callable[[pa.Field], str]] = {
    "mongodb": mongodb, "opensearch": opensearch, "influxdb": influxdb,
}  # fmt: skip


def read_by_mongodb() -> list[tuple[str, str]]:
    """Returns the types of columns that are inferred from values of each type."""
    from bson import Binary, Decimal128, Int64, ObjectId

    values: Mapping[str, Any] = {
        "objectId": ObjectId(), "string": "a", "bool": True, "int": 1, "long": Int64(1),
        "double": 0.5, "decimal": Decimal128(Decimal("1.50")), "date": NOW,
        "binData": Binary(b"a"), "object": {"a": 1}, "array": [1],
    }  # fmt: skip
    found = []
    for name, value in values.items():
        columns = infer_columns([{"c": value}], "_id")
        assert columns is not None
        found.append((f"`{name}`", f"`{column_type(columns.field('c'))}`"))
    return found
