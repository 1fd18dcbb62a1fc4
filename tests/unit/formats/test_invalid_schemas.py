"""Schemas of other systems that libraries accept, but that are invalid."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.json.schema import columns_of

FIXED = {"type": "fixed", "name": "f", "size": 2}


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ({}, "KeyError: 'precision'"),
        ({"precision": "x"}, "precision must be a positive integer"),
        ({"precision": 10**30}, "a decimal of 1000000000000000000000000000000 digits"),
    ],
)
def test_avro(precision: dict[str, Any], message: str) -> None:
    type_ = {"type": "bytes", "logicalType": "decimal", **precision}
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": type_}]}
    with pytest.raises(PlanError, match=message):
        Avro(AvroConfig(schema=schema)).declared_schema()


@pytest.mark.parametrize(
    "part",
    [
        {"type": 1}, {"oneOf": 1}, {"oneOf": "R"}, {"$ref": 5}, {"type": {}}, {"type": [[], "a"]},
        {"enum": 1}, {"properties": [1]}, {"properties": {"b": {}}, "required": None},
    ],
)  # fmt: skip
def test_json_schema(part: Any) -> None:
    try:
        columns_of({"type": "object", "properties": {"a": part}}, {}, "iso")
    except PlanError as error:
        assert error.code == "invalid-schema"


def test_a_recursive_json_schema_is_text() -> None:
    node = {"type": "object", "properties": {"id": {"type": "integer"}, "next": {"$ref": "#"}}}
    inner = pa.struct([("id", pa.int64()), ("next", pa.string())])
    assert columns_of(node, {}, "iso") == pa.schema([("id", pa.int64()), ("next", inner)])


@pytest.mark.parametrize(
    "field",
    [
        {"field": "a", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "x"}},
        {"field": "a", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "99999999999999999999"}},
        {"field": "a", "type": "array", "items": 5},
        5,
    ],
)  # fmt: skip
def test_the_schema_of_a_record_of_kafka_connect(field: Any) -> None:
    schema = {"type": "struct", "fields": [field]}
    payloads = pa.array([json.dumps({"schema": schema, "payload": {"a": "AA=="}}).encode()] * 2)
    columns = pa.schema([("a", pa.decimal128(4, 2))])
    format_ = Json(JsonConfig(wrapper="connect"))
    format_.infer_schema(payloads)
    decoded = format_.decode(payloads, columns)
    assert decoded.rows.num_rows + len(decoded.failures) == 2
