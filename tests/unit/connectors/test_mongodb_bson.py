"""Rows as BSON and documents as rows, beyond the types that FerretDB has."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import bson
import pyarrow as pa
import pytest
from bson import Code, Decimal128, MaxKey, MinKey, ObjectId
from bson.datetime_ms import DatetimeMS

from penstock.connectors.mongodb import cursor
from penstock.connectors.mongodb.client import codec_options
from penstock.connectors.mongodb.documents import decode_documents, to_rows
from penstock.connectors.mongodb.encoding import Encoding, encode_document
from penstock.connectors.mongodb.reading import find_arguments, matching
from penstock.core.errors import EncodeError, PlanError
from penstock.sdk import Read
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.database.row_conversion import RowConversion

UTC = pa.timestamp("us", tz="UTC")
LARGEST = 16 << 20


def encoded(rows: pa.RecordBatch, **options: Any) -> tuple[list[bytes], dict[int, str]]:
    """Returns the documents of rows, and the messages of rows without one."""
    encoding, errors = Encoding(**options), dict[int, Any]()
    fields = encoding.values(rows, errors)
    documents = encoding.documents(fields, rows.num_rows)
    contents = [
        encode_document(each, LARGEST)
        for place, each in enumerate(documents)
        if place not in errors
    ]
    return contents, {index: error.message for index, error in errors.items()}


def decoded(content: bytes, *columns: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the rows of documents, and the messages of bad ones."""
    read = Read()
    conversion = RowConversion("c", pa.schema(columns), read)
    batches = to_rows(decode_documents(content), conversion, str)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return rows, [bad.error.message for bad in read.bad]


def test_decimals_have_34_digits() -> None:
    widest = Decimal("1234567890123456789012345678901234.56")
    values = [Decimal(10**33), Decimal("0.01"), Decimal(-(10**35)), widest]
    column = pa.array(values, pa.decimal128(38, 2))
    rows = pa.RecordBatch.from_arrays([column], names=["d"])
    contents, errors = encoded(rows)
    assert errors == {
        3: f'column "d": {widest} has more than the 34 digits of a Decimal128',
    }
    assert type(bson.decode(contents[0])["d"]) is Decimal128
    read, bad = decoded(b"".join(contents), ("d", column.type))
    assert bad == [] and [row["d"] for row in read] == values[:3]
    texts, errors = encoded(rows, decimals="string")
    assert errors == {} and bson.decode(texts[3]) == {"d": str(widest)}
    assert [row["d"] for row in decoded(b"".join(texts), ("d", column.type))[0]] == values


def test_decimals_that_do_not_fit() -> None:
    documents = [{"d": Decimal128(text)} for text in ("1.25", "1.234", "NaN", "1E+6", "1E+3")]
    content = b"".join(map(bson.encode, documents))
    rows, bad = decoded(content, ("d", pa.decimal128(6, 2)))
    assert [row["d"] for row in rows] == [Decimal("1.25"), Decimal(1000)]
    assert len(bad) == 3 and bad[0] == 'column "d": 1.234 (DECIMAL(4, 3)) is not a DECIMAL(6, 2)'
    assert [row["d"] for row in decoded(content, ("d", pa.string()))[0]] == [
        "1.25", "1.234", "NaN", "1E+6", "1E+3"
    ]  # fmt: skip


def test_doubles_keep_their_bits() -> None:
    values = [math.nan, math.inf, -0.0, 5e-324, 2.0**63]
    contents, errors = encoded(pa.RecordBatch.from_pydict({"x": values}))
    rows, bad = decoded(b"".join(contents), ("x", pa.float64()))
    assert errors == {} and bad == [] and repr([row["x"] for row in rows]) == repr(values)


def test_integers_have_the_type_of_their_column() -> None:
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([5], pa.int64()),
            pa.array([5], pa.int32()),
            pa.array([[5]], pa.list_(pa.int64())),
        ],
        names=["long", "int", "longs"],
    )
    (content,), _ = encoded(rows)
    int32, int64 = 0x10, 0x12
    assert content[4] == int64 and bytes([int32]) + b"int\0" in content
    assert bytes([int64]) + b"0\0" in content


def test_dates_beyond_the_years_of_python() -> None:
    millis = 2**60 // 1000
    far = pa.array([millis * 1000, 0], pa.int64()).cast(UTC)
    nested = pa.StructArray.from_arrays([far], names=["at"])
    contents, errors = encoded(pa.RecordBatch.from_arrays([far, nested], names=["at", "in"]))
    assert errors == {} and bson.decode(contents[0], codec_options()) == {
        "at": DatetimeMS(millis), "in": {"at": DatetimeMS(millis)}
    }  # fmt: skip
    too_far = bson.encode({"at": DatetimeMS(-(2**55))})
    read = Read()
    conversion = RowConversion("c", pa.schema([("at", UTC), ("in", nested.type)]), read)
    documents = decode_documents(b"".join([*contents, too_far]))
    rows = pa.Table.from_batches(to_rows(documents, conversion, str)).combine_chunks()
    assert rows.column("at").chunk(0) == far and rows.column("in").chunk(0) == nested
    (record,) = read.bad
    assert record.error.code == "wrong-type" and record.error.message.startswith('column "at": ')


def test_times_are_in_utc() -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 6000, dt.UTC)
    documents = [{"t": at, "x": at, "in": {"t": at}, "m": at}, {"m": 1}]
    inner = pa.struct([("t", pa.string())])
    rows, errors = decoded(
        b"".join(map(bson.encode, documents)),
        ("t", UTC), ("x", pa.string()), ("in", inner), ("m", pa.string()),
    )  # fmt: skip
    text = "2024-01-02T03:04:05.006Z"
    assert rows[0] == {"t": at, "x": text, "in": {"t": text}, "m": text} and errors == []
    assert rows[1] == {"t": None, "x": None, "in": None, "m": "1"}


def test_microseconds_within_a_value_are_found() -> None:
    times = pa.array([[dt.datetime(1969, 1, 1, 0, 0, 0, 1)]], pa.list_(pa.timestamp("us")))
    rows = pa.RecordBatch.from_arrays([times], names=["times"])
    message = 'column "times": the time has microseconds, and MongoDB stores milliseconds'
    assert encoded(rows) == ([], {0: message})
    (content,), _ = encoded(rows, microseconds="truncate")
    assert bson.decode(content) == {"times": [dt.datetime(1969, 1, 1)]}


def test_text_that_is_not_utf8_is_found_both_ways() -> None:
    column = pa.array([b"ok", b"\xff", None]).cast(pa.binary())
    texts = pa.StringArray.from_buffers(3, *column.buffers()[1:], column.buffers()[0])
    contents, errors = encoded(pa.RecordBatch.from_arrays([texts], names=["s"]))
    assert errors == {1: 'column "s": the text is not UTF-8'} and len(contents) == 2
    good, bad = bson.encode({"s": "ab"}), bson.encode({"s": "ab"}).replace(b"ab", b"\xff\xfe")
    read = Read()
    conversion = RowConversion("c", pa.schema([("s", pa.string())]), read)
    batches = list(to_rows(decode_documents(good + bad + good), conversion, str))
    assert [row["s"] for batch in batches for row in batch.to_pylist()] == ["ab", "ab"]
    (record,) = read.bad
    assert record.payload == bad and record.error.code == "not-utf8" and record.position == 2


def test_documents_that_bson_does_not_have() -> None:
    with pytest.raises(EncodeError, match="has 104 bytes, and the server accepts 100") as raised:
        encode_document({"s": "x" * 91}, 100)
    assert raised.value.code == "too-large"
    for document in ({"a\0b": 1}, {"n": 2**63}, {"s": "\ud800"}):
        with pytest.raises(EncodeError, match="BSON does not have the row") as raised:
            encode_document(document, 100)
        assert raised.value.code == "unencodable"


def test_json_text_is_a_value_of_extended_json() -> None:
    texts = [
        '{"id": {"$oid": "65f0c4045cb311e7907ba600"}}',
        "[1, null]",
        "{",
        None,
        '{"$oid": "x"}',
    ]
    field = json_field(pa.field("v", pa.string()))
    rows = pa.RecordBatch.from_arrays([pa.array(texts)], schema=pa.schema([field]))
    contents, errors = encoded(rows)
    assert sorted(errors) == [2, 4] and errors[2].startswith('column "v": not Extended JSON: ')
    assert [bson.decode(each)["v"] for each in contents] == [
        {"id": ObjectId("65f0c4045cb311e7907ba600")}, [1, None], None,
    ]  # fmt: skip
    content = bson.encode({"v": [MinKey(), MaxKey(), Code("f"), Decimal128("1.5"), 2.0]})
    assert decoded(content, field)[0] == [
        {
            "v": '[{"$minKey": 1}, {"$maxKey": 1}, {"$code": "f"}, {"$numberDecimal": "1.5"}, 2.0]',
        }
    ]


def test_numbers_of_json_text_are_not_rounded() -> None:
    texts = ["0.1", "1.50", "1e22", "0.10000000000000001", "[0.12345678901234567]", "1e400"]
    texts.append('{"n": 12345678901234567890.5}')
    field = json_field(pa.field("any", pa.string()))
    rows = pa.RecordBatch.from_arrays([pa.array(texts)], schema=pa.schema([field]))
    contents, errors = encoded(rows)
    assert [bson.decode(content)["any"] for content in contents] == [0.1, 1.5, 1e22, 0.1]
    assert [*errors] == [4, 5, 6]
    assert all("more digits than a double" in message for message in errors.values())


def test_keys_with_nul_name_their_column() -> None:
    rows = pa.RecordBatch.from_pylist(
        [{"tags": [("a\0", 1)]}], pa.schema([("tags", pa.map_(pa.string(), pa.int64()))])
    )
    assert encoded(rows)[1] == {0: 'column "tags": a key of the map has the character NUL'}


def test_a_value_that_is_required() -> None:
    content = bson.encode({"a": 1}) + bson.encode({"b": 1})
    rows, bad = decoded(content, pa.field("a", pa.int64(), nullable=False))
    assert rows == [{"a": 1}] and bad == ['column "a" is null; expected a value']


def test_columns_without_a_type_of_bson() -> None:
    for type_ in (pa.map_(pa.int32(), pa.string()), pa.duration("us")):
        with pytest.raises(PlanError, match='column "c"') as raised:
            Encoding().check(pa.schema([("c", type_)]))
        assert raised.value.code == "unsupported-type"


def test_a_range_by_several_fields() -> None:
    assert cursor.range_filter(["a", "_id"], None, None) == {}
    assert cursor.range_filter(["_id"], (1,), (5,)) == {
        "$and": [{"_id": {"$gt": 1}}, {"_id": {"$lte": 5}}]
    }
    assert cursor.range_filter(["a", "_id"], (1, 2), None) == {
        "a": {"$gte": 1}, "$or": [{"a": {"$gt": 1}}, {"a": {"$eq": 1}, "_id": {"$gt": 2}}]
    }  # fmt: skip
    assert cursor.range_filter(["a", "_id"], None, (1, 2))["$or"] == [
        {"a": {"$lt": 1}}, {"a": {"$eq": 1}, "_id": {"$lte": 2}}
    ]  # fmt: skip


def test_offsets_keep_the_types_of_their_values() -> None:
    at = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    values = (5, bson.Int64(2**40), 0.5, "ä", ObjectId(), at, Decimal128("1.50"), b"\0", True)
    restored = cursor.decode(cursor.encode(values))
    assert restored == values
    assert [type(each) for each in restored or ()] == [type(each) for each in values]
    assert None not in map(cursor.kind_of, values)
    assert {*map(cursor.kind_of, (None, math.nan, Decimal128("NaN"), [], {}, MinKey()))} == {None}


def test_values_are_ordered_as_the_server_orders_them() -> None:
    assert cursor.sort_key((Decimal128("1.5"),)) < cursor.sort_key((2,))
    assert cursor.sort_key((b"\xff",)) < cursor.sort_key((b"\0\0",))
    early = DatetimeMS(-(2**50))
    assert cursor.sort_key((early,)) < cursor.sort_key((dt.datetime(1, 1, 1, tzinfo=dt.UTC),))


def test_values_of_a_later_document() -> None:
    """Values of another kind are not later, as the filter of a range leaves them out."""
    early, late = ObjectId("0" * 24), ObjectId("f" * 24)
    assert cursor.is_after((late,), (early,)) and not cursor.is_after((early,), (early,))
    assert not cursor.is_after((early,), (late,))
    assert cursor.is_after(("b",), ("a",)) and not cursor.is_after(("b",), (1,))
    assert cursor.is_after((Decimal128("1.5"),), (1,)) and not cursor.is_after((1.0,), (1,))


def test_aggregations_that_are_a_find() -> None:
    first, second = {"a": 1}, {"a": {"$gt": 0}}
    stages = [*matching(first, {}, second), {"$sort": {"a": 1, "_id": 1}}, {"$limit": 3}]
    assert find_arguments(stages) == {
        "filter": {"$and": [first, second]}, "sort": [("a", 1), ("_id", 1)], "limit": 3
    }  # fmt: skip
    assert find_arguments([*matching(first), {"$project": {"a": 1}}, {"$skip": 2}]) == {
        "filter": first, "projection": {"a": 1}, "skip": 2
    }  # fmt: skip
    assert find_arguments([*stages, {"$count": "count"}]) is None


def test_numbers_of_64_bits_and_classes_of_bson_in_a_column() -> None:
    values = [bson.Int64(2**62), 5, None]
    content = b"".join(bson.encode({"n": value}) for value in values)
    assert decoded(content, ("n", pa.int64())) == ([{"n": v} for v in (2**62, 5, None)], [])
    mixed = b"".join(bson.encode({"t": v}) for v in ("a", ObjectId("0" * 24), {"x": 1}))
    rows, bad = decoded(mixed, ("t", pa.string()))
    assert rows == [{"t": "a"}, {"t": "0" * 24}] and len(bad) == 1
