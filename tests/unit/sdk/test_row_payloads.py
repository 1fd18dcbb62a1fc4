"""Payloads of rows in dead letters, which the json format reads again."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.formats.json import Json, JsonConfig
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
