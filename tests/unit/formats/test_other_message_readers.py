"""Payloads and lines of generated rows, read by Python's json and Google's Protobuf library."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from format_samples import ALL, CONTEXT, UTC, rows_of, written
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc
from hypothesis import given, settings

from penstock.formats.debezium import DebeziumJson, DebeziumJsonConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.protobuf import Protobuf, ProtobufConfig
from penstock.formats.text import Text, TextConfig

EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"seconds": 10**6, "millis": 10**3, "micros": 1, "nanos": Decimal("0.001")}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"nulls": "keep"},
    {"timestamps": "seconds", "decimals": "string"},
    {"timestamps": "millis", "decimals": "bytes", "nulls": "keep"},
    {"timestamps": "micros", "timestamp_zone": "none"},
    {"timestamps": "nanos", "nulls": "keep"},
    {"timestamp_zone": "none", "decimals": "string"},
]


def parsed(text: bytes) -> Any:
    """Returns the value of a JSON text, with numbers as decimals. Raises ValueError for NaN."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_no_number)


def _no_number(text: str) -> Any:
    raise ValueError(text)


class Row:
    """Expected values of rows by a parsed JSON object, by the documentation of options."""

    def __init__(self, timestamps: str = "iso", zone: str = "utc", decimals: str = "number"):
        self.timestamps, self.zone, self.decimals = timestamps, zone, decimals

    def value(self, found: Any, type_: pa.DataType) -> Any:
        if found is None:
            return None
        if pa.types.is_struct(type_):
            assert set(found) <= {field.name for field in type_}
            return {field.name: self.value(found.get(field.name), field.type) for field in type_}
        if pa.types.is_map(type_):
            return [(key, self.value(inner, type_.item_type)) for key, inner in found.items()]
        if pa.types.is_list(type_):
            return [self.value(inner, type_.value_type) for inner in found]
        return self._leaf(found, type_)

    def _leaf(self, found: Any, type_: pa.DataType) -> Any:
        if pa.types.is_integer(type_):
            assert found == int(found)
            return int(found)
        if pa.types.is_floating(type_):
            return pa.scalar(float(found), type_).as_py()
        if pa.types.is_decimal(type_):
            return self._decimal(found, type_.scale)
        if pa.types.is_binary(type_):
            return base64.b64decode(found, validate=True)
        if pa.types.is_date(type_):
            return dt.date.fromisoformat(found)
        return self._time(found, type_) if pa.types.is_timestamp(type_) else found

    def _decimal(self, found: Any, scale: int) -> Decimal:
        if self.decimals == "bytes":
            unscaled = int.from_bytes(base64.b64decode(found), "big", signed=True)
            return Decimal(unscaled).scaleb(-scale, CONTEXT)
        assert isinstance(found, str) == (self.decimals == "string")
        return Decimal(found)

    def _time(self, found: Any, type_: pa.TimestampType) -> dt.datetime:
        if self.timestamps != "iso":
            micros = found * UNITS[self.timestamps]
            assert micros == int(micros)
            time = EPOCH + dt.timedelta(microseconds=int(micros))
            return time if type_.tz else time.replace(tzinfo=None)
        time = dt.datetime.fromisoformat(found)
        assert (time.tzinfo is not None) == (type_.tz is not None and self.zone == "utc")
        return time.replace(tzinfo=UTC if type_.tz else None)


def comparable(value: Any) -> Any:
    """Returns a value in which NaN is equal to itself, with a scale for each decimal."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items()}
    return [comparable(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def in_nanos(row: dict[str, Any]) -> bool:
    """Returns whether the times of a row have a number of nanoseconds with 64 bits."""
    years = [row[name].year for name in ("at", "local") if row[name] is not None]
    return all(1678 <= year <= 2261 for year in years)


@pytest.mark.quick(2)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_json(options: dict[str, Any], rows: pa.RecordBatch) -> None:
    format_ = Json(JsonConfig(**options))
    row = Row(
        options.get("timestamps", "iso"), options.get("timestamp_zone", "utc"),
        options.get("decimals", "number"),
    )  # fmt: skip
    struct = pa.struct(list(ALL))
    if options.get("timestamps") == "nanos":
        rows = pa.RecordBatch.from_pylist([row for row in rows.to_pylist() if in_nanos(row)], ALL)
    payloads = format_.encode(rows).payloads.to_pylist()
    lines = written(format_, rows)
    assert lines == b"".join(payload + b"\n" for payload in payloads)
    found = [parsed(payload) for payload in payloads]
    assert comparable([row.value(each, struct) for each in found]) == comparable(rows.to_pylist())
    for each in found:
        if options.get("nulls") == "keep":
            assert list(each) == ALL.names and set(each["struct"] or {}) in (set(), {"q", "w"})
        else:
            assert None not in each.values() and None not in (each.get("struct") or {}).values()


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_json_in_the_wrapper_of_kafka_connect(rows: pa.RecordBatch) -> None:
    flat = [name for name in ALL.names if name not in ("at", "local", "day")]
    rows = rows.select(flat)
    format_ = Json(JsonConfig(wrapper="connect", decimals="bytes", nulls="keep"))
    found = [parsed(payload)["payload"] for payload in format_.encode(rows).payloads.to_pylist()]
    struct = pa.struct(list(rows.schema))
    values = [Row(decimals="bytes").value(each, struct) for each in found]
    assert comparable(values) == comparable(rows.to_pylist())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_debezium_json(rows: pa.RecordBatch) -> None:
    count = rows.num_rows
    changes = rows.take(pa.array([index for index in range(count) for _ in range(4)], pa.int64()))
    operations = pa.array(["i", "ub", "u", "d"] * count, pa.string())
    format_ = DebeziumJson(DebeziumJsonConfig(decimals="bytes"))
    encoded = format_.encode(changes.append_column("_op", operations))
    assert not encoded.failures
    sides = []
    for payload in encoded.payloads.to_pylist():
        event, row = parsed(payload), Row(decimals="bytes")
        values = [row.value(event[side], pa.struct(list(ALL))) for side in ("before", "after")]
        sides.append((event["op"], *values))
    expected = [
        side for row in rows.to_pylist() for side in (("c", None, row), ("u", row, row),
                                                      ("d", row, None))
    ]  # fmt: skip
    assert comparable(sides) == comparable(expected)


@settings(max_examples=30, deadline=None)
@given(rows=rows_of(pa.schema([("text", pa.string())])))
def test_text(rows: pa.RecordBatch) -> None:
    out = io.BytesIO()
    writer = Text(TextConfig()).file_writer(out, rows.schema)
    encoded = writer.write(rows)
    writer.close()
    texts = rows.column("text").to_pylist()
    writable = [
        text for text in texts
        if text is not None and "\n" not in text and not text.endswith("\r")
    ]  # fmt: skip
    assert out.getvalue().decode().split("\n") == [*writable, ""]
    assert len(encoded.failures if encoded else []) == len(texts) - len(writable)


PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
message Row {
  optional int32 tiny = 1; optional sint32 short = 2; optional sfixed32 int = 3;
  optional int64 long = 4; optional float real = 5; optional double double = 6;
  optional string money = 7; optional string exact = 8; optional bool yes = 9;
  optional string text = 10; optional bytes bytes = 11; google.type.Date day = 12;
  google.protobuf.Timestamp at = 13; google.protobuf.Timestamp local = 14;
  repeated double list = 15; Inner struct = 16; repeated Inner structs = 17;
  map<string, sint64> map = 18; repeated bytes blobs = 19;
}
message Inner { optional sint32 q = 1; optional string w = 2; }
"""


@pytest.fixture(scope="module")
def protobuf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Protobuf, Any]:
    """The format, and the class of its messages by Google's library."""
    directory = tmp_path_factory.mktemp("proto")
    (directory / "row.proto").write_text(PROTO)
    compiled = directory / "row.pb"
    modules = [Path(protoc.__file__).parent / "_proto", Path(descriptor_pb2.__file__).parents[2]]
    paths = [f"-I{path}" for path in (directory, *modules)]
    arguments = ["protoc", *paths, f"--descriptor_set_out={compiled}", "--include_imports"]
    assert protoc.main([*arguments, "row.proto"]) == 0
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file:
        pool.Add(file)
    class_ = message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))
    return Protobuf(ProtobufConfig(schema_file=str(compiled), message="Row")), class_


def value_of(message: Any, name: str) -> Any:
    """Returns the value of a column in a message of Google's library."""
    value = getattr(message, name)
    if name == "map":
        return sorted(value.items())
    if name in ("list", "blobs"):
        return list(value)
    if name == "structs":
        return [{"q": value_of(each, "q"), "w": value_of(each, "w")} for each in value]
    if not message.HasField(name):
        return None
    if name == "struct":
        return {"q": value_of(value, "q"), "w": value_of(value, "w")}
    if name in ("money", "exact"):
        return Decimal(value)
    if name == "day":
        return dt.date(value.year, value.month, value.day)
    if name in ("at", "local"):
        time = EPOCH + dt.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        assert value.nanos % 1000 == 0
        return time if name == "at" else time.replace(tzinfo=None)
    return value


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(rows=rows_of(ALL))
def test_protobuf(protobuf: tuple[Protobuf, Any], rows: pa.RecordBatch) -> None:
    format_, class_ = protobuf
    encoded = format_.encode(rows)
    failed = {failure.index for failure in encoded.failures}
    expected = []
    for index, row in enumerate(rows.to_pylist()):
        has_null = any(None in (row[name] or ()) for name in ("list", "structs", "blobs"))
        assert has_null == (index in failed)
        lists = {name: row[name] or [] for name in ("list", "structs", "blobs")}
        if not has_null:
            expected.append({**row, **lists, "map": sorted(row["map"] or [])})
    messages = [class_.FromString(payload) for payload in encoded.payloads.to_pylist()]
    found = [{name: value_of(message, name) for name in ALL.names} for message in messages]
    assert comparable(found) == comparable(expected)
    again = pa.array([message.SerializeToString() for message in messages], pa.binary())
    decoded = format_.decode(again, ALL)
    assert not decoded.failures
    read = [{**row, "map": sorted(row["map"])} for row in decoded.rows.to_pylist()]
    assert comparable(read) == comparable(expected)
