"""Cells of tables, and columns of JSON text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType, VariantType

from penstock.engine.catalyst.columns import sink_schema, to_arrow
from penstock.formats.json import Json, JsonConfig
from penstock.formats.json.schema import json_schema
from penstock.sdk.columns.json_mark import is_json, json_field
from penstock.sdk.columns.json_text import parsed_rows
from penstock.sdk.columns.text_table import cell
from penstock.sdk.columns.type_names import sql_name

NOON = dt.datetime(2024, 1, 2, 12, 0, 0, 500_000, tzinfo=dt.UTC)
MONEY = pa.decimal128(12, 2)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (
            pa.struct([("a", pa.int32()), ("b", MONEY)]),
            {"a": 1, "b": "1.50"},
            '{"a": 1, "b": 1.50}',
        ),
        (pa.struct([("a", pa.string())]), {"a": None}, '{"a": null}'),
        (pa.map_(pa.string(), pa.float64()), [("x", 1.5), ("y", None)], '{"x": 1.5, "y": null}'),
        (pa.map_(pa.int64(), pa.string()), [(1, "é")], '{"1": "é"}'),
        (pa.list_(MONEY), ["1.50", "-2"], "[1.50, -2.00]"),
        (pa.list_(pa.bool_()), [True, None], "[true, null]"),
        (pa.list_(pa.binary()), [b"ab"], '["YWI="]'),
        (pa.list_(pa.timestamp("us", "UTC")), [NOON], '["2024-01-02T12:00:00.500Z"]'),
        (pa.list_(pa.date32()), [dt.date(2024, 1, 2)], '["2024-01-02"]'),
        (pa.list_(pa.float64()), [float("nan"), 1e300], '["NaN", 1e+300]'),
        (pa.list_(pa.string()), [], "[]"),
        (MONEY, "12.50", "12.50"),
        (pa.decimal128(38, 10), "0.0000000001", "0.0000000001"),
        (pa.bool_(), False, "false"),
        (pa.binary(), b"ab", "YWI="),
        (pa.float32(), 0.1, "0.1"),
        (pa.string(), '"quoted"  text', '"quoted" text'),
        (pa.timestamp("us", "UTC"), NOON, "2024-01-02 12:00:00.5"),
        (pa.date32(), dt.date(2024, 1, 2), "2024-01-02"),
        (pa.duration("us"), dt.timedelta(days=1), "PT86400S"),
        (pa.duration("us"), dt.timedelta(seconds=-1, milliseconds=-50), "-PT1.05S"),
        (pa.list_(pa.duration("us")), [dt.timedelta(0)], '["PT0S"]'),
        (pa.struct([("a", pa.int32())]), None, ""),
    ],
)
def test_cell(type_: pa.DataType, value: Any, expected: str) -> None:
    if pa.types.is_decimal(type_):
        value = Decimal(value)
    if type_ == pa.list_(MONEY):
        value = [Decimal(item) for item in value]
    if pa.types.is_struct(type_) and value and "b" in value:
        value = {**value, "b": Decimal(value["b"])}
    assert cell(pa.array([value], type_)[0], pa.field("x", type_)) == expected


VARIANTS = (
    StructType()
    .add("id", LongType())
    .add("v", VariantType())
    .add("s", StructType().add("a", VariantType()))
    .add("l", ArrayType(VariantType()))
    .add("m", MapType(StringType(), VariantType()))
)


def json_rows() -> pa.RecordBatch:
    schema = sink_schema(VARIANTS)
    rows = [
        {
            "id": 1,
            "v": '{"a":[1,"x"]}',
            "s": {"a": "2.5"},
            "l": ["null", None],
            "m": [("k", '"t"')],
        },
        {"id": 2, "v": None, "s": None, "l": [], "m": None},
    ]
    return pa.RecordBatch.from_pylist(rows, schema)


def test_variants_are_marked_text_for_sinks() -> None:
    schema = sink_schema(VARIANTS)
    assert [sql_name(field.type) for field in schema] == [
        "BIGINT", "STRING", "STRUCT<a: STRING>", "ARRAY<STRING>", "MAP<STRING, STRING>",
    ]  # fmt: skip
    assert is_json(schema.field("v")) and not is_json(schema.field("id"))
    plain = StructType().add("id", LongType()).add("s", StructType().add("a", StringType()))
    assert sink_schema(plain).equals(to_arrow(plain), check_metadata=True)
    names = [sql_name(field.type) for field in to_arrow(VARIANTS)]
    assert names[1:] == ["VARIANT", "STRUCT<a: VARIANT>", "ARRAY<VARIANT>", "MAP<STRING, VARIANT>"]


def test_json_text_is_embedded_in_json() -> None:
    rows = json_rows()
    encoded = Json(JsonConfig(nulls="keep")).encode(rows)
    assert encoded.payloads.to_pylist() == [
        b'{"id":1,"v":{"a":[1,"x"]},"s":{"a":2.5},"l":[null,null],"m":{"k":"t"}}',
        b'{"id":2,"v":null,"s":null,"l":[],"m":null}',
    ]
    part = Json(JsonConfig()).encode(rows.slice(1)).payloads.to_pylist()
    assert part == [b'{"id":2,"l":[]}']
    assert parsed_rows(pa.Table.from_batches([rows]))[0] == {
        "id": 1, "v": {"a": [1, "x"]}, "s": {"a": 2.5}, "l": [None, None], "m": {"k": "t"},
    }  # fmt: skip


def test_cells_of_json_text() -> None:
    rows = json_rows()
    cells = [cell(rows.column(name)[0], rows.schema.field(name)) for name in rows.schema.names]
    assert cells == ["1", '{"a":[1,"x"]}', '{"a": 2.5}', "[null, null]", '{"k": "t"}']


def test_json_schema_of_json_text_allows_any_value() -> None:
    schema = pa.schema([json_field(pa.field("v", pa.string()))])
    assert json_schema(schema, "iso")["properties"] == {"v": {}}
