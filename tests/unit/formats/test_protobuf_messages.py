"""Messages of any syntax, read and written beside Google's library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import PlanError
from penstock.core.panics import Panic, panics_as_exceptions
from penstock.formats.protobuf import Protobuf, ProtobufConfig

GROUPS = """
syntax = "proto2";
package shop;
message Order {
  required int64 id = 1;
  optional group Result = 2 {
    optional string url = 3;
    repeated group Tag = 4 { optional int32 n = 5; }
  }
  repeated group Many = 6 { optional string x = 7; optional Inner inner = 70; }
  optional Inner inner = 8;
  map<string, Inner> named = 9;
  oneof choice { Inner one = 10; string two = 11; }
  optional Level level = 12;
  optional int32 after = 1000;
}
message Inner { optional group G = 1 { optional int32 k = 2; } optional Inner next = 3; }
enum Level { LOW = 1; HIGH = 2; }
enum Other { NONE = 1; }
"""
EDITION = """
edition = "2023";
package shop;
message Order {
  int64 id = 1;
  Result result = 2 [features.message_encoding = DELIMITED];
  repeated Many many = 6;
  Inner inner = 8;
  map<string, Inner> named = 9;
  oneof choice { Inner one = 10; string two = 11; }
  Level level = 12;
  int32 after = 1000 [features.field_presence = IMPLICIT];
}
message Result { string url = 3; repeated Tag tag = 4; }
message Tag { int32 n = 5; }
message Many { string x = 7; Inner inner = 70; }
message Inner { G g = 1 [features.message_encoding = DELIMITED]; Inner next = 3; }
message G { int32 k = 2; }
enum Level { option features.enum_type = CLOSED; LOW = 1; HIGH = 2; }
"""
DEEP = """
syntax = "proto3";
package shop;
import "google/protobuf/struct.proto";
message Order {
  int64 id = 1;
  google.protobuf.Struct extra = 2;
  Node root = 3;
  repeated google.protobuf.Value values = 4;
  map<string, Node> nodes = 5;
  optional int32 n = 6;
}
message Node { string name = 1; Node left = 2; repeated Node children = 3; }
"""
G = pa.struct([("g", pa.struct([("k", pa.int32())]))])
TAGS = pa.list_(pa.struct([("n", pa.int32())]))
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("result", pa.struct([("url", pa.string()), ("tag", TAGS)])),
        ("many", pa.list_(pa.struct([("x", pa.string()), ("inner", G)]))),
        ("inner", pa.struct([*G, ("next", G)])),
        ("named", pa.map_(pa.string(), G)),
        ("one", G),
        ("two", pa.string()),
        ("level", pa.string()),
        ("after", pa.int32()),
    ]
)


def message(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Values of some of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


_number = st.integers(-(2**31), 2**31 - 1)
_g = message(g=message(k=_number))
_text = st.text("aü", max_size=200)
_order = st.fixed_dictionaries(
    {"id": st.integers(-9, 9).map(str)},
    optional={
        "result": message(url=_text, tag=st.lists(message(n=_number), max_size=3)),
        "many": st.lists(message(x=_text, inner=_g), max_size=3),
        "inner": message(next=_g),
        "named": st.dictionaries(st.text("k", max_size=3), _g, max_size=3),
        "one": _g,
        "level": st.sampled_from(["LOW", "HIGH"]),
        "after": _number,
    },
)


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("proto")
    for name, text in {"groups": GROUPS, "edition": EDITION, "deep": DEEP}.items():
        (directory / f"{name}.proto").write_text(text)
    return directory


@pytest.fixture(scope="module", params=["groups.proto", "edition.proto"])
def orders(where: Path, request: pytest.FixtureRequest) -> Protobuf:
    return format_of(where / request.param)


def format_of(path: Path, **options: Any) -> Protobuf:
    return Protobuf(ProtobufConfig(schema_file=str(path), message="shop.Order", **options))


def google(format_: Protobuf, value: dict[str, Any] | None = None) -> Any:
    """Google's message of a value."""
    return ParseDict(value or {}, GetMessageClass(format_.message.descriptor)())


def expected_value(value: Any, type_: pa.DataType) -> Any:
    """The value of a column by that of `MessageToDict`."""
    if pa.types.is_map(type_):
        return {key: expected_value(item, type_.item_type) for key, item in (value or {}).items()}
    if pa.types.is_list(type_):
        return [expected_value(item, type_.value_type) for item in value or ()]
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {field.name: expected_value(value.get(field.name), field.type) for field in type_}
    return int(value) if pa.types.is_int64(type_) else value


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(values=st.lists(_order, min_size=1, max_size=4))
def test_groups_and_editions(orders: Protobuf, values: list[dict[str, Any]]) -> None:
    messages = [google(orders, value) for value in values]
    payloads = pa.array([message.SerializeToString() for message in messages], pa.binary())
    decoded = orders.decode(payloads, COLUMNS)
    assert not decoded.failures
    rows = decoded.rows.to_pylist(maps_as_pydicts="strict")
    for message, row in zip(messages, rows, strict=True):
        implicit = {} if message.DESCRIPTOR.fields_by_name["after"].has_presence else {"after": 0}
        fields = {**implicit, **MessageToDict(message, preserving_proto_field_name=True)}
        assert row == expected_value(fields, pa.struct(list(COLUMNS)))
    encoded = orders.encode(decoded.rows)
    assert not encoded.failures
    parse = type(google(orders)).FromString
    assert [parse(text) for text in encoded.payloads.to_pylist()] == messages


def test_groups_that_are_no_columns_are_skipped(orders: Protobuf) -> None:
    message = google(orders, {"id": "1", "result": {"url": "u"}, "after": 2})
    columns = pa.schema([("after", pa.int32()), ("id", pa.int64())])
    decoded = orders.decode(pa.array([message.SerializeToString()]), columns)
    assert decoded.rows.to_pylist() == [{"after": 2, "id": 1}]


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "damaged",
    [
        b"\x13\x1a\x01u", b"\x14", b"\x13\x1a\x01u\x1c", b"\x13\x1a\x7fu\x14", b"\x13\x17\x14",
        b"\x42\x03\x0b\x10\x01", b"\x13\x80", b"\x13" * 150,
    ],
)  # fmt: skip
def test_damaged_groups_are_errors(where: Path, damaged: bytes) -> None:
    orders = format_of(where / "groups.proto")
    payload = b"\x08\x01" + damaged
    with pytest.raises(DecodeError, match="Wire format was corrupt"):
        type(google(orders)).FromString(payload)
    decoded = orders.decode(pa.array([payload, b"\x08\x02"]), COLUMNS)
    assert [failure.index for failure in decoded.failures] == [0]
    assert decoded.failures[0].error.code in ("not-protobuf", "too-deep")
    assert decoded.rows.column("id").to_pylist() == [2]


TREE: dict[str, Any] = {
    "id": "7",
    "extra": {"a": [1.5, {"b": None}]},
    "root": {
        "name": "r",
        "left": {"name": "l", "left": {"name": "m"}},
        "children": [{"name": "c"}],
    },
    "values": ["x", {"y": True}],
    "nodes": {"k": {"name": "n", "left": {"name": "o"}}},
}
NAME = [("name", pa.string())]
LEAF = pa.struct(NAME)
ROOT = pa.struct([*NAME, ("left", LEAF), ("children", pa.list_(LEAF))])


def test_recursive_fields_are_read_as_far_as_they_are_declared(where: Path) -> None:
    deep = format_of(where / "deep.proto")
    payload = google(deep, TREE).SerializeToString()
    nodes = pa.map_(pa.string(), pa.struct([("left", LEAF)]))
    columns = pa.schema([("id", pa.int64()), ("root", ROOT), ("nodes", nodes)])
    deep.check_columns(columns)
    decoded = deep.decode(pa.array([payload]), columns)
    assert decoded.rows.to_pylist() == [
        {
            "id": 7,
            "root": {"name": "r", "left": {"name": "l"}, "children": [{"name": "c"}]},
            "nodes": [("k", {"left": {"name": "o"}})],
        }
    ]
    written = deep.encode(decoded.rows).payloads
    assert deep.decode(written, columns).rows.equals(decoded.rows)


@pytest.mark.slow
def test_a_recursive_column_is_an_error_of_check(where: Path) -> None:
    deep = format_of(where / "deep.proto")
    extra = pa.schema([("extra", pa.string())])
    checks: list[Callable[[], object]] = [deep.declared_schema, lambda: deep.check_columns(extra)]
    for check in checks:
        with pytest.raises(PlanError, match="recursive") as caught:
            check()
        assert "as_json" in str(caught.value.hint)


@pytest.mark.slow
def test_messages_as_json_text(where: Path) -> None:
    deep = format_of(where / "deep.proto", as_json=True)
    schema = deep.declared_schema()
    assert schema == pa.schema([("value", pa.string())])
    payload = google(deep, TREE).SerializeToString()
    decoded = deep.decode(pa.array([payload, b"\x08"]), schema)
    assert [json.loads(row["value"]) for row in decoded.rows.to_pylist()] == [TREE]
    assert [failure.error.code for failure in decoded.failures] == ["not-protobuf"]
    with pytest.raises(PlanError, match="one column"):
        deep.check_columns(COLUMNS)


def test_columns_that_no_field_has_are_null(orders: Protobuf) -> None:
    payload = google(orders, {"id": "1"}).SerializeToString()
    columns = pa.schema([("other", pa.int64())])
    decoded = orders.decode(pa.array([payload, payload]), columns)
    assert decoded.rows.to_pylist() == [{"other": None}] * 2


@pytest.mark.slow
def test_names_that_differ_by_case(tmp_path: Path) -> None:
    fields = "optional int32 a = 1; optional int32 A = 2;"
    path = tmp_path / "case.proto"
    path.write_text(f'syntax = "proto2"; package shop; message Order {{ {fields} }}')
    columns = format_of(path).declared_schema()
    assert columns is not None
    decoded = format_of(path).decode(pa.array([b"\x08\x01\x10\x02"]), columns)
    assert decoded.rows.to_pylist() == [{"a": 1, "A": 2}]


def test_a_field_within_a_column_that_the_message_does_not_have(where: Path) -> None:
    rows = pa.RecordBatch.from_pylist([{"root": {"nome": "x"}}])
    with pytest.raises(PlanError, match='has no field "nome"'):
        format_of(where / "deep.proto").encode(rows)


def test_a_panic_of_a_library_is_an_exception() -> None:
    class PanicException(BaseException):
        pass

    with pytest.raises(Panic, match="index out of bounds"), panics_as_exceptions():
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), panics_as_exceptions():
        raise KeyboardInterrupt
