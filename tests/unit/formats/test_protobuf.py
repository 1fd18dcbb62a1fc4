from __future__ import annotations

import io
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import format_samples as samples
import pyarrow as pa
import pytest
from format_samples import TORTURE, batch, code, outcome, read, same, written
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import PlanError
from penstock.formats.protobuf import Protobuf, ProtobufConfig
from penstock.formats.protobuf.lengths import delimit
from penstock.sdk import Read

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "parts/line.proto";
enum Kind { NONE = 0; BUY = 1; }
message Order {
  int64 id = 1; string user = 2; double price = 3; optional int32 qty = 4;
  google.protobuf.Timestamp at = 5; bool ok = 6; repeated Line lines = 7;
  map<string, int64> tags = 8; bytes blob = 9; Kind kind = 10; uint64 big = 11;
  oneof choice { string a = 12; int32 b = 13; }
  repeated int32 nums = 14; Line one = 15; uint32 medium = 16; repeated Kind kinds = 17;
}
message Loop { Loop next = 1; }
"""
LINE = 'syntax = "proto3"; package shop; message Line { string sku = 1; int32 n = 2; }'


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("proto")
    (directory / "parts").mkdir()
    (directory / "parts" / "line.proto").write_text(LINE)
    (directory / "shop.proto").write_text(PROTO)
    (directory / "bad.proto").write_text("message {")
    return directory


@pytest.fixture(scope="module")
def orders(where: Path) -> Protobuf:
    return Protobuf(ProtobufConfig(schema_file=str(where / "shop.proto"), message="shop.Order"))


def declared(orders: Protobuf) -> pa.Schema:
    schema = orders.declared_schema()
    assert schema is not None
    return schema


_line = st.fixed_dictionaries({"sku": samples.VALUES["text"], "n": samples.VALUES["int"]})
_kind = st.sampled_from(["NONE", "BUY"])
_order = st.fixed_dictionaries(
    {
        "id": samples.VALUES["long"],
        "user": samples.VALUES["text"],
        "price": samples.VALUES["double"],
        "qty": st.none() | samples.VALUES["int"],
        "at": st.none() | samples.VALUES["at"],
        "ok": st.booleans(),
        "lines": st.lists(_line, max_size=2),
        "tags": samples.VALUES["map"],
        "blob": samples.VALUES["bytes"],
        "kind": _kind,
        "big": st.integers(0, 2**64 - 1).map(Decimal),
        "a": st.none() | samples.VALUES["text"],
        "b": st.none(),
        "nums": st.lists(samples.VALUES["int"], max_size=3),
        "one": st.none() | _line,
        "medium": st.integers(0, 2**32 - 1),
        "kinds": st.lists(_kind, max_size=2),
    }
)


@pytest.mark.slow
def test_round_trip(orders: Protobuf) -> None:
    schema = declared(orders)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(_order, max_size=4))
    def check(values: list[dict[str, Any]]) -> None:
        rows = batch(values, schema)
        encoded = orders.encode(rows)
        assert not encoded.failures
        by_key = [{**row, "tags": sorted(row["tags"])} for row in rows.to_pylist()]
        found = outcome(orders, encoded.payloads.to_pylist(), schema).rows.to_pylist()
        assert [{**row, "tags": sorted(row["tags"])} for row in found] == by_key
        _, places, asked = read(orders, written(orders, rows, rows), schema)
        assert places == list(range(1, 2 * len(values) + 1)) and not asked.bad

    check()


def test_defaults_and_nulls(orders: Protobuf) -> None:
    schema = declared(orders)
    found = outcome(orders, [b""], schema)
    row = found.rows.to_pylist()[0]
    assert (row["id"], row["user"], row["qty"], row["at"], row["kind"], row["lines"]) == (
        0,
        "",
        None,
        None,
        "NONE",
        [],
    )
    nulls = batch([{}], schema)
    assert orders.encode(nulls).payloads.to_pylist() == [b""]
    same(
        outcome(orders, orders.encode(nulls.select(["id"])).payloads.to_pylist(), schema).rows,
        found.rows,
    )


@pytest.mark.slow
def test_bad_payloads(orders: Protobuf) -> None:
    schema = declared(orders)
    assert code(orders, None, schema) == "no-value"
    for payload in (b"\xff", b"\x08", b"\x12\x05ab", b"\x12\x02\xff\xfe"):
        assert code(orders, payload, schema) == "not-protobuf"
    mixed = [b"\x08\x07" if i % 9 else b"\xff" for i in range(10_000)]
    assert outcome(orders, mixed, schema).rows.column("id").to_pylist() == [7] * 8888
    outcome(orders, TORTURE, schema)
    assert code(orders, b"\x08\x01", pa.schema([("id", pa.int8())])) == "ok"
    assert code(orders, b"\x08\xff\x7f", pa.schema([("id", pa.int8())])) == "wrong-type"


def test_bad_rows(orders: Protobuf) -> None:
    rows = batch(
        [{"kind": "BUY"}, {"kind": "ZZ"}, {"kinds": ["X"]}, {"nums": [None]}, {}], declared(orders)
    )
    encoded = orders.encode(rows)
    assert [f[0] for f in encoded.failures] == [1, 2, 3] and len(encoded.payloads) == 2
    with pytest.raises(PlanError, match="no field"):
        orders.encode(pa.record_batch({"nope": [1]}))


@pytest.mark.slow
def test_files(orders: Protobuf) -> None:
    schema = declared(orders)
    content = b"\x02\x08\x01\x01\xff\x02\x08\x03"
    rows, places, asked = read(orders, content, schema)
    assert ([row["id"] for row in rows], places) == ([1, 3], [1, 3])
    assert [(bad.position, bad.error.code) for bad in asked.bad] == [(2, "not-protobuf")]
    assert read(orders, content[:-1], schema)[2].bad[-1].error.code == "cut-off"
    for payload in TORTURE:
        read(orders, payload or b"", schema)
    assert read(orders, b"\xff" * 9 + b"\x01", schema)[2].bad[0].error.code == "too-large"


@pytest.fixture(scope="module")
def delimited(orders: Protobuf) -> Protobuf:
    return Protobuf(orders.config.model_copy(update={"length_delimited": True}))


def test_lengths_before_payloads(orders: Protobuf, delimited: Protobuf) -> None:
    schema = declared(orders)
    rows = batch([{"id": 1}, {"kind": "ZZ"}, {}, {"user": "x" * 300}], schema)
    encoded = delimited.encode(rows)
    assert [failure[0] for failure in encoded.failures] == [1]
    payloads = encoded.payloads.to_pylist()
    assert payloads[:2] == [b"\x02\x08\x01", b"\x00"]
    assert payloads[2].startswith(b"\xaf\x02\x12\xac\x02xx"), "303 and 300 in two bytes each"
    found = outcome(delimited, payloads, schema).rows
    assert [(row["id"], row["user"]) for row in found.to_pylist()] == [
        (1, ""), (0, ""), (0, "x" * 300),
    ]  # fmt: skip
    assert written(delimited, rows) == written(orders, rows) == b"".join(payloads)
    assert read(delimited, b"".join(payloads), schema)[1] == [1, 2, 3]


def test_wrong_lengths(delimited: Protobuf) -> None:
    schema = declared(delimited)
    for payload, why in (
        (None, "no-value"), (b"", "cut-off"), (b"\x82", "cut-off"),
        (b"\x03\x08\x01", "wrong-length"), (b"\x01\x08\x01", "wrong-length"),
        (b"\x02\x08\x01" * 2, "wrong-length"), (b"\xff" * 9 + b"\x01", "too-large"),
        (b"\x80" * 10, "too-large"), (b"\x01\xff", "not-protobuf"),
    ):  # fmt: skip
        assert code(delimited, payload, schema) == why
    mixed = [b"\x02\x08\x07", b"\x08\x07", None, b"\x01\xff", b"\x02\x08\x09"]
    found = outcome(delimited, mixed, schema)
    assert found.rows.column("id").to_pylist() == [7, 9]
    assert [(each.index, each.error.code) for each in found.failures] == [
        (1, "wrong-length"), (2, "no-value"), (3, "not-protobuf"),
    ]  # fmt: skip
    assert found.failures[0].error.message == "expected a message of 8 bytes, found 1"
    outcome(delimited, TORTURE, schema)


@pytest.mark.slow
def test_length_prefixed_messages_of_google(where: Path) -> None:
    from google.protobuf.proto import serialize_length_prefixed
    from google.protobuf.timestamp_pb2 import Timestamp

    proto = where / "time.proto"
    proto.write_text('syntax = "proto3"; message Time { int64 seconds = 1; int32 nanos = 2; }')
    out = io.BytesIO()
    serialize_length_prefixed(Timestamp(seconds=300, nanos=7), out)
    format_ = Protobuf(
        ProtobufConfig(schema_file=str(proto), message="Time", length_delimited=True)
    )
    found = outcome(format_, [out.getvalue()], declared(format_))
    assert found.rows.to_pylist() == [{"seconds": 300, "nanos": 7}]
    assert format_.encode(found.rows).payloads.to_pylist() == [out.getvalue()]


def test_lengths_do_not_go_with_a_registry() -> None:
    with pytest.raises(ValueError, match="length_delimited"):
        ProtobufConfig.model_validate({"registry": {"url": "http://x"}, "length_delimited": True})


@pytest.mark.slow
def test_enums_as_numbers_and_pickles(where: Path) -> None:
    config = ProtobufConfig(
        schema_file=str(where / "shop.proto"), message="shop.Order", enums="number"
    )
    copy = pickle.loads(pickle.dumps(Protobuf(config)))
    assert declared(copy).field("kind").type == pa.int32()
    assert outcome(copy, [b"\x50\x63"], declared(copy)).rows.column("kind").to_pylist() == [99]


@pytest.mark.slow
def test_invalid_schemas(where: Path) -> None:
    for file, message, text in (
        ("shop.proto", "shop.Ordr", "unknown message"),
        ("shop.proto", "shop.Loop", "is recursive"),
        ("bad.proto", "x", "does not compile"),
        ("no.proto", "x", "cannot read"),
    ):
        with pytest.raises(PlanError) as raised:
            Protobuf(
                ProtobufConfig(schema_file=str(where / file), message=message)
            ).declared_schema()
        assert text in raised.value.message


def test_rejected_message_of_a_file_is_read_again(orders: Protobuf) -> None:
    schema = declared(orders)
    ((rows, positions),) = orders.read_record(b"\x08\x01", b"", schema, "file", Read())
    assert (rows.column("id").to_pylist(), positions.to_pylist()) == ([1], [1])


def nested_groups(levels: int, number: int = 100) -> bytes:
    def tag(kind: int) -> bytes:
        value = number << 3 | kind
        return bytes([value & 0x7F | 0x80, value >> 7])

    return tag(3) * levels + tag(4) * levels


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + delimit(content)


@pytest.mark.parametrize(
    "levels, expected", [(100, "ok"), (101, "too-deep"), (110_000, "too-deep")]
)
def test_depth_of_unknown_groups_is_limited(orders: Protobuf, levels: int, expected: str) -> None:
    groups, schema = nested_groups(levels), declared(orders)
    assert code(orders, groups, schema) == expected
    assert code(orders, b"\x08\x01" + groups, schema) == expected
    assert code(orders, field(15, groups), schema) == expected
    assert code(orders, field(7, b"\x10\x01" + groups) + b"\x12\x01u", schema) == expected
    found = outcome(orders, [b"\x08\x01", groups, None, b"\x08\x02"], schema)
    ids = [row["id"] for row in found.rows.to_pylist()]
    assert ids == ([1, 0, 2] if expected == "ok" else [1, 2])


def test_unclosed_groups_are_an_error(orders: Protobuf) -> None:
    unclosed = nested_groups(110_000)[:220_000]
    assert code(orders, unclosed, declared(orders)) == "too-deep"
    assert code(orders, unclosed[:180], declared(orders)) == "not-protobuf"


def test_text_like_tags_of_groups_is_a_value(orders: Protobuf) -> None:
    schema, text = declared(orders), b"\xa3\x06".decode("latin-1") + "#+3;CKS[" * 2000
    payload = field(2, text.encode())
    found = outcome(orders, [payload] * 3, schema)
    assert [row["user"] for row in found.rows.to_pylist()] == [text] * 3
    assert code(orders, payload + b"\x0a", schema) == "not-protobuf"


def test_many_groups_beside_each_other_are_accepted(orders: Protobuf) -> None:
    found = outcome(orders, [nested_groups(1) * 500 + b"\x08\x07"], declared(orders))
    assert [row["id"] for row in found.rows.to_pylist()] == [7]
