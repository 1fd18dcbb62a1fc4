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
    schema = orders.declared()
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


def test_files(orders: Protobuf) -> None:
    schema = declared(orders)
    content = b"\x02\x08\x01\x01\xff\x02\x08\x03"
    rows, places, asked = read(orders, content, schema)
    assert ([row["id"] for row in rows], places) == ([1, 3], [1, 3])
    assert [(bad.position, bad.error.code) for bad in asked.bad] == [(2, "not-protobuf")]
    assert read(orders, content[:-1], schema)[2].bad[-1].error.code == "cut-off"
    for payload in TORTURE:
        read(orders, payload or b"", schema)
    assert read(orders, b"\xff" * 9 + b"\x01", schema)[2].bad[0].error.code == "too-long"


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
        (b"\x02\x08\x01" * 2, "wrong-length"), (b"\xff" * 9 + b"\x01", "too-long"),
        (b"\x80" * 10, "too-long"), (b"\x01\xff", "not-protobuf"),
    ):  # fmt: skip
        assert code(delimited, payload, schema) == why
    mixed = [b"\x02\x08\x07", b"\x08\x07", None, b"\x01\xff", b"\x02\x08\x09"]
    found = outcome(delimited, mixed, schema)
    assert found.rows.column("id").to_pylist() == [7, 9]
    assert [(each.index, each.error.code) for each in found.failures] == [
        (1, "wrong-length"), (2, "no-value"), (3, "not-protobuf"),
    ]  # fmt: skip
    assert found.failures[0].error.message == "the length says 8 bytes, and 1 follow"
    outcome(delimited, TORTURE, schema)


def test_what_google_wrote_behind_lengths(where: Path) -> None:
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


def test_enums_as_numbers_and_pickles(where: Path) -> None:
    config = ProtobufConfig(
        schema_file=str(where / "shop.proto"), message="shop.Order", enums="number"
    )
    copy = pickle.loads(pickle.dumps(Protobuf(config)))
    assert declared(copy).field("kind").type == pa.int32()
    assert outcome(copy, [b"\x50\x63"], declared(copy)).rows.column("kind").to_pylist() == [99]


def test_mistakes(where: Path) -> None:
    for file, message, text in (
        ("shop.proto", "shop.Ordr", "no message"),
        ("shop.proto", "shop.Loop", "contains itself"),
        ("bad.proto", "x", "does not compile"),
        ("no.proto", "x", "cannot read"),
    ):
        with pytest.raises(PlanError) as raised:
            Protobuf(ProtobufConfig(schema_file=str(where / file), message=message)).declared()
        assert text in raised.value.message
