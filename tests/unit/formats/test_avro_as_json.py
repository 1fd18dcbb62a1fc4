"""Avro records of any schema as JSON text."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.formats.avro import Avro, AvroConfig
from penstock.sdk import Read

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "node",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "value", "type": ["null", "int", {"type": "array", "items": "string"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "raw", "type": "bytes"},
        {"name": "rate", "type": "double"},
        {"name": "next", "type": ["null", "node"]},
    ],
}  # fmt: skip
LEAF = {
    "id": 2, "value": ["ü", '"'], "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    "day": date(1970, 1, 3), "price": Decimal("12.50"), "raw": b"a\xff", "rate": float("-inf"),
    "next": None,
}  # fmt: skip
TEXT = (
    '{"id":2,"value":["ü","\\""],"at":1000,"day":2,"price":12.50,"raw":"aÿ","rate":"-Infinity",'
    '"next":null}'
)
ROOT = {**LEAF, "id": 1, "value": 7, "rate": 0.5, "next": LEAF}
COLUMNS = pa.schema([("value", pa.string())])
PARSED = fastavro.parse_schema(SCHEMA)


def datum(value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED, value)
    return out.getvalue()


def container(*values: Any) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, PARSED, values)
    return out.getvalue()


def make(**options: Any) -> Any:
    return Avro.create(AvroConfig.model_validate({"as_json": True, **options}))


def test_datums() -> None:
    format_ = make(schema=SCHEMA)
    assert format_.declared_schema() == COLUMNS
    payloads = pa.array([datum(LEAF), b"x", datum(ROOT)], pa.binary())
    rows, index, failures = format_.decode(payloads, COLUMNS)
    texts = rows.column("value").to_pylist()
    assert texts[0] == TEXT
    assert json.loads(texts[1])["next"] == json.loads(TEXT)
    assert index.to_pylist() == [0, 2]
    assert [failure.index for failure in failures] == [1]


def test_containers() -> None:
    format_ = make(framing="container")
    payloads = pa.array([container(ROOT, LEAF), container(LEAF)], pa.binary())
    rows, index, failures = format_.rows(payloads, pa.schema([("j", pa.string())]))
    assert rows.column("j").to_pylist()[1:] == [TEXT, TEXT]
    assert index.to_pylist() == [0, 0, 1]
    assert not failures


def test_files() -> None:
    file = io.BytesIO(container(LEAF, LEAF))
    assert make().infer_file(file) == COLUMNS
    file.seek(0)
    read = [
        rows.column("value").to_pylist() for rows, _ in make().read_file(file, COLUMNS, "", Read())
    ]
    assert read == [[TEXT, TEXT]]


def test_there_is_one_column() -> None:
    columns = pa.schema([("a", pa.string()), ("b", pa.string())])
    with pytest.raises(PlanError, match="expects one column of type STRING, found 2"):
        make(schema=SCHEMA).decode(pa.array([datum(LEAF)], pa.binary()), columns)
