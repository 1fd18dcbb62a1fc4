from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import format_samples as samples
import pyarrow as pa
import pytest
from format_samples import (
    ALL,
    TORTURE,
    UTC,
    batch,
    binary,
    code,
    message,
    outcome,
    read,
    same,
    written,
)
from hypothesis import given, settings

from penstock.core.errors import PlanError
from penstock.formats.json import Json, JsonConfig

JSON = Json(JsonConfig())


def one(type_: pa.DataType, text: str, **options: Any) -> Any:
    """The value of a column, or the code of the error."""
    schema = pa.schema([("a", type_)])
    found = outcome(Json(JsonConfig(**options)), [f'{{"a":{text}}}'.encode()], schema)
    if found.failures:
        return found.failures[0].error.code
    return found.rows.column(0)[0].as_py()


BAD = "wrong-type"
DEC = pa.decimal128(10, 2)
AT = pa.timestamp("us", "UTC")
NOON = dt.datetime(2024, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (pa.int32(), "12", 12),
        (pa.int32(), '"12"', 12),
        (pa.int32(), "12.0", 12),
        (pa.int32(), "1.2e1", 12),
        (pa.int32(), "1.5", BAD),
        (pa.int32(), "2147483648", BAD),
        (pa.int32(), "true", BAD),
        (pa.int32(), '"x"', BAD),
        (pa.int32(), '""', BAD),
        (pa.int32(), "[1]", BAD),
        (pa.int32(), "null", None),
        (pa.int32(), '"NaN"', BAD),
        (pa.int8(), "127", 127),
        (pa.int8(), "128", BAD),
        (pa.int8(), "127.9", BAD),
        (pa.int64(), "9223372036854775807", 2**63 - 1),
        (pa.int64(), "9223372036854775808", BAD),
        (pa.int64(), "-9223372036854775808", -(2**63)),
        (pa.int64(), "9007199254740993", 2**53 + 1),
        (pa.int64(), "9007199254740993.0", 2**53 + 1),
        (pa.int64(), "9007199254740992.5", BAD),
        (pa.int64(), '"e5"', BAD),
        (pa.int64(), "5e4294967296", BAD),
        (pa.int64(), "1e18", 10**18),
        (pa.float64(), "1", 1.0),
        (pa.float64(), '"1.5"', 1.5),
        (pa.float64(), '"abc"', BAD),
        (pa.float64(), '"Infinity"', float("inf")),
        (pa.float64(), "true", BAD),
        (pa.float64(), '""', BAD),
        (pa.float64(), "1e400", BAD),
        (pa.float32(), "1e300", BAD),
        (pa.float32(), "-1e39", BAD),
        (DEC, "1.23", Decimal("1.23")),
        (DEC, '"1.23"', Decimal("1.23")),
        (DEC, "1.230", Decimal("1.23")),
        (DEC, "1.239", BAD),
        (DEC, "123456789", BAD),
        (DEC, "1e3", Decimal(1000)),
        (DEC, '"e5"', BAD),
        (DEC, "5e4294967296", BAD),
        (DEC, "1e1000000000", BAD),
        (DEC, "true", BAD),
        (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
        (pa.decimal128(38, 0), "9" * 39, BAD),
        (pa.decimal128(20, 0), str(2**64 - 1), Decimal(2**64 - 1)),
        (pa.decimal128(38, 2), str(2**63 - 1), Decimal(2**63 - 1)),
        (pa.decimal128(38, 0), str(2**126 - 1), Decimal(2**126 - 1)),
        (pa.bool_(), "true", True),
        (pa.bool_(), '"true"', BAD),
        (pa.bool_(), "1", BAD),
        (pa.string(), '"\\ud83d\\ude00"', "😀"),
        (pa.string(), "1.50", "1.50"),
        (pa.string(), "true", "true"),
        (pa.string(), '{"b": [1, null]}', '{"b":[1,null]}'),
        (pa.string(), '"\\u0000"', "\0"),
        (pa.string(), '"\\ud83d"', "not-json"),
        (pa.binary(), '"YWI="', b"ab"),
        (pa.binary(), '"!"', BAD),
        (pa.binary(), "1", BAD),
        (pa.date32(), '"2024-01-02"', dt.date(2024, 1, 2)),
        (pa.date32(), "19000", BAD),
        (pa.date32(), '"2024-02-30"', BAD),
        (pa.date32(), '"2024-01-02T03:04:05Z"', BAD),
        (AT, '"2024-01-02T12:00:00Z"', NOON),
        (AT, '"2024-01-02 12:00:00"', NOON),
        (AT, '"2024-01-02T14:00:00+02:00"', NOON),
        (AT, '"2024-01-02T14:00+0200"', NOON),
        (AT, '"2024-01-02T12:00:00.000000999Z"', BAD),
        (AT, '"2024-01-02T12:00:00.000000000Z"', NOON),
        (AT, "1700000000", BAD),
        (AT, '"x"', BAD),
        (AT, '"2024-01-02"', NOON.replace(hour=0)),
        (AT, '"2024-02-30T00:00:00Z"', BAD),
        (AT, '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=UTC)),
        (pa.timestamp("us"), '"2024-01-02T14:00:00+02:00"', NOON.replace(tzinfo=None)),
        (pa.list_(pa.field("element", pa.int32())), "[1,null]", [1, None]),
        (pa.list_(pa.field("element", pa.int32())), "[1.5]", BAD),
        (pa.list_(pa.field("element", pa.int32())), "1", BAD),
        (pa.map_(pa.string(), pa.int32()), '{"k":1}', [("k", 1)]),
        (pa.map_(pa.string(), pa.int32()), '{"k":1,"k":2}', [("k", 2)]),
        (pa.map_(pa.int64(), pa.int32()), '{"12":1}', [(12, 1)]),
        (pa.map_(pa.int64(), pa.int32()), '{"x":1}', BAD),
        (pa.struct([("x", pa.int64())]), '{"x":1,"y":2}', {"x": 1}),
        (pa.struct([("x", pa.int64())]), "{}", {"x": None}),
        (pa.struct([("x", pa.int64())]), "[]", BAD),
    ],
)
def test_values(type_: pa.DataType, text: str, expected: Any) -> None:
    assert one(type_, text) == expected


@pytest.mark.parametrize(
    ("unit", "text"),
    [("seconds", "1704196800"), ("millis", "1704196800000"), ("micros", '"1704196800000000"')],
)
def test_times_as_numbers(unit: str, text: str) -> None:
    assert one(AT, text, timestamps=unit) == NOON
    assert one(AT, '"2024-01-02T12:00:00Z"', timestamps=unit) == BAD
    rows = batch([{"at": NOON}, {"at": None}], pa.schema([("at", AT)]))
    format_ = Json(JsonConfig(timestamps=unit, nulls="keep"))
    same(format_.decode(format_.encode(rows).payloads, rows.schema).rows, rows)


@pytest.mark.parametrize(
    ("unit", "microsecond", "text"),
    [
        ("seconds", 0, b"1704196800"),
        ("seconds", 250_000, b"1704196800.25"),
        ("millis", 678_000, b"1704196800678"),
        ("millis", 678_500, b"1.7041968006785e12"),
        ("micros", 678_500, b"1704196800678500"),
    ],
)
def test_written_times_are_whole_numbers_without_a_fraction(
    unit: str, microsecond: int, text: bytes
) -> None:
    at = NOON.replace(microsecond=microsecond)
    schema = pa.schema([("at", AT), ("in", pa.struct([("at", AT)])), ("all", pa.list_(AT))])
    row = {"at": at, "in": {"at": at}, "all": [at, None]}
    (payload,) = Json(JsonConfig(timestamps=unit)).encode(batch([row], schema)).payloads.to_pylist()
    assert payload == b'{"at":%s,"in":{"at":%s},"all":[%s,null]}' % (text, text, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1704196800000000000", NOON),
        ("1704196800000000999", NOON),
        ("1.7041968e18", NOON),
        ('"2024-01-02T12:00:00Z"', NOON),
        ("-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        ("1e300", BAD),
        ("true", BAD),
    ],
)
def test_numbers_in_place_of_times(text: str, expected: Any) -> None:
    assert one(AT, text, timestamp_numbers="nanos", nanoseconds="truncate") == expected
    assert text.startswith('"') or one(AT, text) == BAD


def test_fractions_of_seconds() -> None:
    assert one(AT, "1704196800.25", timestamps="seconds") == NOON.replace(microsecond=250_000)


A = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (None, "no-value"),
        (b"", "no-value"),
        (b"  \n", "no-value"),
        (b"[1]", "not-an-object"),
        (b"null", "not-an-object"),
        (b'{"a":1', "not-json"),
        (b'{"a":1}{"a":2}', "not-json"),
        (b'{"a":1},{"a":2}', "not-json"),
        (b'{"b":"\xe9"}', "not-utf8"),
        (b'{"a":NaN}', BAD),
        ('{"a":1}'.encode("utf-16"), "not-utf8"),
        (b'{"a":1}\0', "not-json"),
        (b'{"a":' + b"[" * 10**6 + b"]" * 10**6 + b"}", "too-deep"),
        (b'\xef\xbb\xbf{"a":1}', "ok"),
        (b' \t\r\n{"a" : 1 }\r\n\r\n', "ok"),
        (b'{"A":1}', "ok"),
        (b'{"zz":' + b"[" * 9999 + b"]" * 9999 + b',"a":1}', "ok"),
        (b'{\n  "a": 1,\n  "x": {\n    "y": {}\n  }\n}', "ok"),
        (b'{"a":1,"a":2}', "ok"),
    ],
)
def test_texts(payload: bytes | None, expected: str) -> None:
    assert code(JSON, payload, A) == expected


def test_messages_say_what_is_wrong() -> None:
    assert message(JSON, b'{"a" 1}', A) == 'not JSON: expected ":" at character 6'
    assert message(JSON, b'{"a":1.5}', A) == 'column "a": 1.5 is not a BIGINT'
    assert message(JSON, b'{"b":"\xe9"}', A) == "not UTF-8: byte 0xe9 at byte 7"
    nested = pa.schema([("l", pa.list_(pa.field("element", pa.struct([("x", pa.int32())]))))])
    assert message(JSON, b'{"l":[{},{"x":true}]}', nested) == 'column "l[1].x": true is not an INT'


def test_a_payload_of_two_objects_does_not_shift_its_neighbours() -> None:
    payloads = [b'{"a":1}{"a":9}', b"", b'{"a":2}', b'{"b":"}', b'{"}', b'{"a":3}\n{"a":9}', b" "]
    found = outcome(JSON, payloads * 50, A)
    assert found.rows.column("a").to_pylist() == [2] * 50


def test_missing_values() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
    assert code(JSON, b"{}", schema) == "missing-value"
    assert code(JSON, b'{"a":null}', schema) == "missing-value"
    assert code(JSON, b'{"a":1}', schema) == "ok"


def test_unknown_keys() -> None:
    closed = Json(JsonConfig(unknown="reject"))
    assert code(closed, b'{"a":1,"c":2}', A) == "unknown-key"
    assert code(closed, b'{"a":1}', A) == "ok"


@pytest.mark.slow
def test_bad_records_do_not_cost_their_neighbours() -> None:
    good = [json.dumps({"a": i, "b": f"u{i}"}).encode() for i in range(20_000)]
    mixed: list[bytes | None] = list(good)
    bad = {7 * i * i % 20_000: TORTURE[i % len(TORTURE)] for i in range(60)}
    for place, payload in bad.items():
        mixed[place] = payload
    found = outcome(JSON, mixed, A)
    kept = [i for i in range(20_000) if i not in bad]
    rows = dict(zip(found[1].to_pylist(), found.rows.column("a").to_pylist(), strict=True))
    assert all(rows[i] == i for i in kept)


def test_torture() -> None:
    outcome(JSON, TORTURE, ALL)
    outcome(JSON, TORTURE * 3, A)


@pytest.mark.slow
def test_huge_values() -> None:
    huge = json.dumps({"a": 1, "b": "😀" * 3_000_000}, ensure_ascii=False).encode()
    wide = b'{"a":1,"z":[' + b"{}," * 1_000_000 + b"{}]}"
    found = outcome(JSON, [b'{"a":1}', huge, b"x", wide, huge[:-1]], A)
    assert found[1].to_pylist() == [0, 1, 3]
    assert code(JSON, b'{"a":"' + b"x" * 12_000_000 + b'"}', A) == BAD


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(samples.rows_of(ALL))
def test_round_trip(rows: pa.RecordBatch) -> None:
    for format_ in (JSON, Json(JsonConfig(nulls="keep"))):
        encoded = format_.encode(rows)
        assert not encoded.failures and len(encoded.payloads) == rows.num_rows
        same(outcome(format_, encoded.payloads.to_pylist(), ALL).rows, rows)
        for payload in encoded.payloads.to_pylist():
            json.loads(payload)


def test_not_a_number_is_text() -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.list_(pa.field("element", pa.float64())))])
    nan, inf = float("nan"), float("inf")
    rows = batch(
        [{"x": 1.5, "y": [1.0]}, {"x": nan, "y": None}, {"x": -inf, "y": [nan, 2.0]}], schema
    )
    encoded = JSON.encode(rows)
    assert encoded.payloads.to_pylist()[:2] == [b'{"x":1.5,"y":[1.0]}', b'{"x":"NaN"}']
    same(JSON.decode(encoded.payloads, schema).rows, rows)


def test_encoded_text() -> None:
    schema = pa.schema([("at", AT), ("d", DEC), ("b", pa.binary()), ("n", pa.string())])
    row = {"at": NOON, "d": Decimal("1.20"), "b": b"ab", "n": None}
    text = b'{"at":"2024-01-02T12:00:00Z","d":1.20,"b":"YWI="}'
    assert JSON.encode(batch([row], schema)).payloads.to_pylist() == [text]


OPTIONAL = pa.schema(
    [
        ("id", pa.int64()),
        ("point", pa.struct([("x", pa.int64()), ("inner", pa.struct([("y", pa.int64())]))])),
        ("list", pa.list_(pa.struct([("x", pa.int64())]))),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("maps", pa.map_(pa.string(), pa.map_(pa.string(), pa.struct([("x", pa.string())])))),
    ]
)
NULLS: list[dict[str, Any]] = [
    {
        "point": {"x": None, "inner": {"y": None}},
        "list": [None, {"x": None}, {"x": 1}],
        "map": [("a", None), ("b", 1.5), ("c", float("inf"))],
        "maps": [("p", None), ("q", [("r", None), ("s", {"x": None}), ("t", {"x": "null"})])],
    },
    {"id": 1, "point": None, "list": None, "map": None, "maps": []},
    {"id": 2, "map": [("a", 1.0)], "maps": [("p", [("q", {"x": "}"})])]},
]


def test_nulls_omit_drops_fields_and_keeps_entries_of_maps() -> None:
    rows = batch(NULLS, OPTIONAL)
    encoded = JSON.encode(rows)
    assert encoded.payloads.to_pylist() == [
        b'{"point":{"inner":{}},"list":[null,{},{"x":1}],"map":{"a":null,"b":1.5,"c":"Infinity"},'
        b'"maps":{"p":null,"q":{"r":null,"s":{},"t":{"x":"null"}}}}',
        b'{"id":1,"maps":{}}',
        b'{"id":2,"map":{"a":1.0},"maps":{"p":{"q":{"x":"}"}}}}',
    ]
    same(JSON.decode(encoded.payloads, OPTIONAL).rows, rows)
    assert JSON.encode(rows.slice(1)).payloads.to_pylist() == encoded.payloads.to_pylist()[1:]


@pytest.mark.parametrize("nulls", ["omit", "keep"])
def test_a_slice_of_nested_structs(nulls: Any) -> None:
    schema = pa.schema([("point", OPTIONAL.field("point").type)])
    rows = batch([{"point": {"x": id_, "inner": {"y": id_}}} for id_ in range(3)], schema)
    texts = Json(JsonConfig(nulls=nulls)).encode(rows.slice(1)).payloads.to_pylist()
    assert texts == [b'{"point":{"x":%d,"inner":{"y":%d}}}' % (id_, id_) for id_ in (1, 2)]


def test_nulls_keep_writes_all_nulls() -> None:
    rows = batch(NULLS[:2], OPTIONAL)
    encoded = Json(JsonConfig(nulls="keep")).encode(rows)
    assert encoded.payloads.to_pylist() == [
        b'{"id":null,"point":{"x":null,"inner":{"y":null}},"list":[null,{"x":null},{"x":1}],'
        b'"map":{"a":null,"b":1.5,"c":"Infinity"},'
        b'"maps":{"p":null,"q":{"r":null,"s":{"x":null},"t":{"x":"null"}}}}',
        b'{"id":1,"point":null,"list":null,"map":null,"maps":{}}',
    ]
    same(JSON.decode(encoded.payloads, OPTIONAL).rows, rows)


FLOATS = pa.schema(
    [
        ("x", pa.float64()),
        ("real", pa.float32()),
        ("point", pa.struct([("x", pa.float64()), ("y", pa.float64()), ("f", pa.float32())])),
        ("list", pa.list_(pa.float64())),
        ("map", pa.map_(pa.float64(), pa.struct([("q", pa.float64())]))),
    ]
)
NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize("nulls", ["omit", "keep"])
def test_nan_and_infinity_change_no_other_value(nulls: Any) -> None:
    rows = batch(
        [
            {
                "x": 1e300, "real": 0.1, "point": {"x": 1.0, "y": NAN, "f": 0.1},
                "list": [1.0, NAN, -INFINITE], "map": [(NAN, {"q": 1.5}), (INFINITE, {"q": NAN})],
            },
            {
                "x": NAN, "real": INFINITE, "point": {"x": -0.0, "y": 2.0, "f": 3.5},
                "list": [0.1], "map": [(1.5, {"q": INFINITE})],
            },
        ],
        FLOATS,
    )  # fmt: skip
    texts = Json(JsonConfig(nulls=nulls)).encode(rows).payloads
    assert [json.loads(text) for text in texts.to_pylist()] == [
        {
            "x": 1e300, "real": 0.1, "point": {"x": 1.0, "y": "NaN", "f": 0.1},
            "list": [1.0, "NaN", "-Infinity"],
            "map": {"NaN": {"q": 1.5}, "Infinity": {"q": "NaN"}},
        },
        {
            "x": "NaN", "real": "Infinity", "point": {"x": -0.0, "y": 2.0, "f": 3.5},
            "list": [0.1], "map": {"1.5": {"q": "Infinity"}},
        },
    ]  # fmt: skip
    assert str(JSON.decode(texts, FLOATS).rows.to_pylist()) == str(rows.to_pylist())
    texts = Json(JsonConfig(nulls="keep", not_finite="null")).encode(rows).payloads
    assert [json.loads(text) for text in texts.to_pylist()] == [
        {
            "x": 1e300, "real": 0.1, "point": {"x": 1.0, "y": None, "f": 0.1},
            "list": [1.0, None, None], "map": {"NaN": {"q": 1.5}, "Infinity": {"q": None}},
        },
        {
            "x": None, "real": None, "point": {"x": -0.0, "y": 2.0, "f": 3.5},
            "list": [0.1], "map": {"1.5": {"q": None}},
        },
    ]  # fmt: skip


def test_times_without_a_zone() -> None:
    at, local = pa.timestamp("us", "UTC"), pa.timestamp("us")
    nested = pa.struct([("at", at), ("all", pa.list_(at)), ("by", pa.map_(pa.string(), at))])
    schema = pa.schema([("at", at), ("local", local), ("nested", nested), ("day", pa.date32())])
    times = [dt.datetime(2023, 9, 19, 3, 19, 8, fraction, UTC) for fraction in (0, 120_000, 7)]
    values = {"at": times[1], "all": times, "by": [("k", times[0])]}
    row = {
        "at": times[0], "local": times[2].replace(tzinfo=None), "nested": values,
        "day": dt.date(2023, 9, 19),
    }  # fmt: skip
    format_ = Json(JsonConfig(timestamp_zone="none"))
    (text,) = format_.encode(batch([row], schema)).payloads.to_pylist()
    all_ = ["2023-09-19T03:19:08", "2023-09-19T03:19:08.120", "2023-09-19T03:19:08.000007"]
    assert json.loads(text) == {
        "at": all_[0], "local": all_[2], "day": "2023-09-19",
        "nested": {"at": all_[1], "all": all_, "by": {"k": all_[0]}},
    }  # fmt: skip
    same(format_.decode(binary([text]), schema).rows, batch([row], schema))


def test_binary_as_hexadecimal_digits() -> None:
    inner = pa.list_(pa.struct([("x", pa.binary()), ("n", pa.int64())]))
    schema = pa.schema([("a", pa.binary()), ("b", inner), ("m", pa.map_(pa.string(), pa.binary())),
                        ("i", pa.map_(pa.int64(), pa.string()))])  # fmt: skip
    row = {"a": b"\x0a\xff", "b": [{"x": None, "n": 1}, {"x": b"", "n": 2}], "m": {"k": b"\0"},
           "i": {1: "one"}}  # fmt: skip
    rows = pa.RecordBatch.from_pylist([row, {"a": None, "b": None, "m": None, "i": None}], schema)
    found = Json(JsonConfig(binary="hex")).encode(rows).payloads.to_pylist()
    assert [json.loads(text) for text in found] == [
        {"a": "0aff", "b": [{"n": 1}, {"x": "", "n": 2}], "m": {"k": "00"}, "i": {"1": "one"}}, {},
    ]  # fmt: skip


def test_slices() -> None:
    payloads = binary([b"x", b'{"a":1}', b'{"a":2}', None, b"y"])
    assert JSON.decode(payloads.slice(1, 2), A).rows.column("a").to_pylist() == [1, 2]
    rows = JSON.decode(payloads.slice(1, 2), A).rows
    assert JSON.encode(rows.slice(1)).payloads.to_pylist() == [b'{"a":2}']
    assert JSON.decode(payloads.slice(0, 0), A).rows.num_rows == 0


def test_files() -> None:
    content = b'\xef\xbb\xbf{"a":1}\r\n\r\n  \n{"a":2}\nx\n{"a":3,"b":"z"}'
    rows, places, asked = read(JSON, content, A)
    assert [row["a"] for row in rows] == [1, 2, 3] and places == [1, 4, 6]
    assert [(bad.position, bad.payload, bad.error.code) for bad in asked.bad] == [
        (5, b"x", "not-json")
    ]
    assert read(JSON, b"", A)[0] == []


def test_a_bad_record_of_a_file_is_one_whatever_is_used() -> None:
    rows, _, asked = read(JSON, b'{"a":"x","b":"y"}\n{"a":1}', A, columns=frozenset(["b"]))
    assert rows == [{"a": 1, "b": None}] and asked.bad[0].payload == b'{"a":"x","b":"y"}'


@pytest.mark.slow
def test_big_files() -> None:
    lines = [json.dumps({"a": i, "b": "x" * (i % 300)}).encode() for i in range(30_000)]
    lines[9] = b'{"b":"' + b"x" * 3_000_000 + b'"}'
    rows, places, asked = read(JSON, b"\n".join(lines), A)
    assert len(rows) == 30_000 and places == list(range(1, 30_001)) and not asked.bad
    assert [rows[i]["a"] for i in (0, 10, 29_999)] == [0, 10, 29_999]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(samples.rows_of(ALL))
def test_file_round_trip(rows: pa.RecordBatch) -> None:
    found, _, asked = read(JSON, written(JSON, rows, rows) if rows.num_rows else b"", ALL)
    assert len(found) == 2 * rows.num_rows and not asked.bad


def test_infer() -> None:
    schema = JSON.infer_schema(
        binary(
            [
                b'{"i":1,"f":1,"t":"2024-01-02T03:04:05Z","s":"x","o":{"a":1},"l":[1],"n":null}',
                b"bad",
                None,
                b'{"f":1.5,"i":2,"o":{"b":true},"l":[],"d":"2024-01-02","m":1}',
                b'{"m":"x"}',
            ]
        )
    )
    assert schema is not None
    assert {f.name: str(f.type) for f in schema} == {
        "i": "int64",
        "f": "double",
        "t": "timestamp[us, tz=UTC]",
        "s": "string",
        "o": "struct<a: int64, b: bool>",
        "l": "list<element: int64>",
        "n": "string",
        "d": "date32[day]",
        "m": "string",
    }
    assert JSON.infer_schema(binary([])) is None


def test_a_name_with_nul_is_not_written() -> None:
    rows = pa.RecordBatch.from_pydict({"a": ["x"], "k\0b": ["y"]})
    with pytest.raises(PlanError, match="its name has NUL"):
        Json(JsonConfig()).encode(rows)
