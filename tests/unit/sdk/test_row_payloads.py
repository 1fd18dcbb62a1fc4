"""Payloads of rows in dead letters, which the json format reads again."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.formats.json import Json, JsonConfig
from penstock.sdk.columns.escaped_bytes import hide_bytes, restore_bytes
from penstock.sdk.columns.row_json import row_payload


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ('"b"', None)]),
        (pa.map_(pa.int32(), pa.string()), [(7, "x")]),
        (pa.map_(pa.bool_(), pa.float64()), [(True, 0.5)]),
        (pa.map_(pa.date32(), pa.string()), [(dt.date(2024, 1, 2), "x")]),
        (pa.map_(pa.decimal128(5, 2), pa.string()), [(Decimal("1.50"), "x")]),
        (pa.list_(pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))), [[("a", [("b", 1)])]]),
        (pa.struct([("m", pa.map_(pa.string(), pa.binary()))]), {"m": [("a", b"x")]}),
        (pa.struct([("m", pa.map_(pa.string(), pa.int64()))]), None),
        (pa.map_(pa.string(), pa.int64()), None),
    ],
)
def test_rows_with_maps_are_read_again(type_: pa.DataType, value: Any) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([value], type_)], names=["m"])
    decoded = Json(JsonConfig()).decode(pa.array([row_payload(rows, 0)]), rows.schema)
    assert decoded.failures == []
    assert decoded.rows.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    "text", [b"\xff", b"a\xc3(b", b"\\udcff", b"\\\xff", b"\xed\xb3\xbf", b"ok"]
)
def test_bytes_that_are_not_utf8_are_restored(text: bytes) -> None:
    value = pa.array([text], pa.binary()).view(pa.string())
    entries = pa.MapArray.from_arrays([0, 1], value, value)
    rows = pa.RecordBatch.from_arrays([value, entries], names=["t", "m"])
    payload = row_payload(rows, 0)
    json.loads(payload)
    decoded = Json(JsonConfig()).decode(pa.array(hide_bytes([payload])), rows.schema)
    assert restore_bytes(decoded.rows).equals(rows)


def test_characters_that_hide_bytes_are_kept() -> None:
    payloads = ['{"t": "\U0010ff80"}'.encode(), b'{"t": "\\udcff"}']
    assert hide_bytes(payloads) == payloads


def test_floats_that_json_does_not_have_are_texts() -> None:
    columns = {"x": [1.0], "y": [float("nan")], "z": [[float("-inf"), 0.5]]}
    rows = pa.RecordBatch.from_pydict(columns)
    assert row_payload(rows, 0) == b'{"x": 1.0, "y": "NaN", "z": ["-Infinity", 0.5]}'
