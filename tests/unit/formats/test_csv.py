from __future__ import annotations

import datetime as dt
import io
from contextlib import suppress
from decimal import Decimal
from typing import Any

import format_samples as samples
import pyarrow as pa
import pytest
from format_samples import (
    FLAT,
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
from hypothesis import strategies as st

from penstock.core.errors import Permanent, PlanError
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.csv.lines import LINE_ENDS, read_lines
from penstock.formats.json import Json

CSV = Csv(CsvConfig())
NO_HEADER = Csv(CsvConfig(header=False))
AB = pa.schema([("a", pa.int64()), ("b", pa.string())])
BAD = "wrong-type"


def one(type_: pa.DataType, text: str, **options: Any) -> Any:
    schema = pa.schema([("a", type_), ("b", pa.string())])
    found = outcome(Csv(CsvConfig(**options)), [f"{text},x".encode()], schema)
    return found.failures[0].error.code if found.failures else found.rows.column(0)[0].as_py()


NOON = dt.datetime(2024, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (pa.int32(), "12", 12),
        (pa.int32(), " 12 ", 12),
        (pa.int32(), "12.0", 12),
        (pa.int32(), "+1", 1),
        (pa.int32(), "1.5", BAD),
        (pa.int32(), "2147483648", BAD),
        (pa.int32(), "", None),
        (pa.int32(), '""', None),
        (pa.int32(), '"12"', 12),
        (pa.int64(), "1_0", BAD),
        (pa.float64(), "1e3", 1000.0),
        (pa.float64(), "abc", BAD),
        (pa.float64(), "inf", float("inf")),
        (pa.decimal128(10, 2), "1.239", BAD),
        (pa.decimal128(10, 2), "123456789", BAD),
        (pa.decimal128(10, 2), "1.2", Decimal("1.20")),
        (pa.bool_(), "TRUE", True),
        (pa.bool_(), "0", False),
        (pa.bool_(), "yes", BAD),
        (pa.date32(), "2024-01-02", dt.date(2024, 1, 2)),
        (pa.date32(), "02.01.2024", BAD),
        (pa.timestamp("us", "UTC"), "2024-01-02 12:00:00", NOON),
        (pa.timestamp("us", "UTC"), "2024-01-02T14:00:00+02:00", NOON),
        (pa.timestamp("us", "UTC"), "soon", BAD),
        (pa.binary(), "YWI=", b"ab"),
        (pa.binary(), "!", BAD),
        (pa.binary(), '""', b""),
        (pa.string(), '""', ""),
        (pa.string(), "", None),
        (pa.string(), " x ", " x "),
        (pa.string(), '"a ""b"", c"', 'a "b", c'),
        (pa.string(), '5" pipe', '5" pipe'),
        (pa.string(), '"x\ny"', "x\ny"),
        (pa.string(), "😀", "😀"),
    ],
)
def test_values(type_: pa.DataType, text: str, expected: Any) -> None:
    assert one(type_, text) == expected


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"1,x", "ok"),
        (b"1,x\r\n", "ok"),
        (b"1", "too-few-columns"),
        (b"1,x,y", "too-many-columns"),
        (None, "no-value"),
        (b"", "no-value"),
        (b"\n", "no-value"),
        (b'1,"x', "open-quote"),
        (b"1,x\n2,y", "several-records"),
        (b"1,\xe9", "not-utf8"),
        (b"\xff\xfe1,", "not-utf8"),
        (b"a,b", BAD),
    ],
)
def test_payloads(payload: bytes | None, expected: str) -> None:
    assert code(CSV, payload, AB) == expected


def test_messages_name_column_and_value() -> None:
    schema = pa.schema([("dep_delay", pa.float64()), ("b", pa.string())])
    assert message(CSV, b"abc,x", schema) == 'column "dep_delay": "abc" is not a DOUBLE'
    assert message(CSV, b"1", schema) == "expected 2 columns, found 1"


def test_options() -> None:
    assert one(pa.int64(), "NA", nulls=["NA"]) is None
    assert one(pa.string(), '"NA"', nulls=["NA"]) == "NA"
    assert one(pa.string(), "NA", nulls=["NA"]) is None
    german = Csv(CsvConfig(delimiter=";", columns=["b", "a"], quote="'"))
    found = outcome(german, [b"'x;y';1"], AB)
    assert found.rows.to_pylist() == [{"a": 1, "b": "x;y"}]
    assert code(Csv(CsvConfig(escape="\\")), b'1,"a\\"b"', AB) == "ok"
    latin = Csv(CsvConfig(encoding="latin-1"))
    assert outcome(latin, ["1,é".encode("latin-1")], AB).rows.to_pylist()[0]["b"] == "é"
    rows, _, _ = read(
        Csv(CsvConfig(encoding="utf-16", comment="#")), "a,b\n#x\n1,é\n".encode("utf-16"), AB
    )
    assert rows == [{"a": 1, "b": "é"}]
    content = b'a,b\n1,"x\n#y"\n# z\n2,z#\n'
    rows, _, _ = read(Csv(CsvConfig(comment="#")), content, AB)
    assert rows == [{"a": 1, "b": "x\n#y"}, {"a": 2, "b": "z#"}]
    rows, _, _ = read(Csv(CsvConfig(delimiter="\t", header=False)), b"1\tx\n", AB)
    assert rows == [{"a": 1, "b": "x"}]


def test_nested_types_are_errors() -> None:
    schema = pa.schema([("a", pa.list_(pa.int64()))])
    with pytest.raises(PlanError, match="ARRAY"):
        CSV.decode(binary([b"1"]), schema)


def test_missing_values() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
    assert code(CSV, b",x", schema) == "missing-value"
    _, _, asked = read(CSV, b"a,b\n,x\n", schema)
    assert [bad.error.code for bad in asked.bad] == ["missing-value"]


def test_torture() -> None:
    outcome(CSV, TORTURE, AB)
    outcome(CSV, TORTURE, FLAT)
    for payload in TORTURE:
        read(NO_HEADER, payload or b"", AB)
        with suppress(Permanent):
            read(CSV, payload or b"", AB)
        read(CSV, b"a,b\n1,x\n" + (payload or b"") + b"\n2,y\n", AB)


@pytest.mark.slow
def test_bad_records_do_not_cost_their_neighbours() -> None:
    good: list[bytes | None] = [f"{i},u{i}".encode() for i in range(20_000)]
    bad = {7 * i * i % 20_000: TORTURE[i % len(TORTURE)] for i in range(60)}
    mixed = [bad.get(i, payload) for i, payload in enumerate(good)]
    found = outcome(CSV, mixed, AB)
    rows = dict(zip(found[1].to_pylist(), found.rows.column("a").to_pylist(), strict=True))
    assert all(rows[i] == i for i in range(20_000) if i not in bad)


def test_files_go_by_header() -> None:
    content = b'\xef\xbb\xbfb,zz,"a"\r\nhi,1,2\r\n\r\n"mul\r\nti",3,4\nbad,3\nx,y,1.5\nend,,9'
    csv = Csv(CsvConfig(missing_columns="null"))
    rows, places, asked = read(csv, content, pa.schema([*AB, ("c", pa.date32())]))
    assert rows == [
        {"a": 2, "b": "hi", "c": None},
        {"a": 4, "b": "mul\r\nti", "c": None},
        {"a": 9, "b": "end", "c": None},
    ]
    assert places == [2, 4, 8]
    assert [(bad.position, bad.payload, bad.error.code) for bad in asked.bad] == [
        (6, b"bad,3", "too-few-columns"),
        (7, b"x,y,1.5", BAD),
    ]
    assert len(read(CSV, content, AB, columns=frozenset(["b"]))[2].bad) == 2
    assert read(CSV, b"", AB)[0] == [] and read(CSV, b"a,b", AB)[0] == []


@pytest.mark.slow
def test_an_open_quote_costs_its_line_only() -> None:
    lines = [b"a,b"] + [f'{i},"u{i}"'.encode() for i in range(50_000)]
    lines[100] = b'99,"open'
    lines[200] = b'199,"real'
    lines[201] = b'end"'
    lines[300] = b'299,5" pipe'
    rows, places, asked = read(CSV, b"\n".join(lines), AB)
    assert [(bad.position, bad.error.code) for bad in asked.bad] == [(101, "open-quote")]
    assert len(rows) == 49_998
    assert rows[198] == {"a": 199, "b": "real\nend"} and places[198] == 201
    assert rows[297] == {"a": 299, "b": '5" pipe'}
    assert read(CSV, b'a,b\n1,x\n2,"y', AB)[0] == [{"a": 1, "b": "x"}]


@pytest.mark.slow
def test_values_of_many_lines_across_blocks() -> None:
    long = "line\n" * 40_000
    content = "a,b\n" + "".join(f'{i},"{long}"\n' for i in range(3)) + "7,z\n"
    rows, places, asked = read(CSV, content.encode(), AB)
    assert [row["a"] for row in rows] == [0, 1, 2, 7] and not asked.bad
    assert places == [2, 2 + 40_001, 2 + 80_002, 2 + 120_003]
    assert rows[1]["b"] == long


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(samples.rows_of(FLAT))
def test_round_trip(rows: pa.RecordBatch) -> None:
    encoded = CSV.encode(rows)
    assert not encoded.failures and len(encoded.payloads) == rows.num_rows
    same(outcome(CSV, encoded.payloads.to_pylist(), FLAT).rows, rows)
    found, _, asked = read(CSV, written(CSV, rows, rows), FLAT)
    assert len(found) == 2 * rows.num_rows and not asked.bad
    same(batch(found[: rows.num_rows], FLAT), rows)


def test_empty_bytes_beside_several_lines() -> None:
    schema = pa.schema([("text", pa.string()), ("bytes", pa.binary())])
    rows = batch([{"text": "\n", "bytes": b""}, {"text": "\n", "bytes": None}], schema)
    same(outcome(CSV, CSV.encode(rows).payloads.to_pylist(), schema).rows, rows)
    assert read(CSV, written(CSV, rows), schema)[0] == rows.to_pylist()


def test_quotes_only_where_needed() -> None:
    rows = batch([{"a": 1, "b": "x"}, {"a": None, "b": None}], AB)
    assert written(CSV, rows) == b"a,b\n1,x\n,\n"
    rows = batch([{"a": 1, "b": ""}, {"a": None, "b": "x,y"}], AB)
    assert CSV.encode(rows).payloads.to_pylist() == [b'1,""', b',"x,y"']


def test_infer() -> None:
    content = b"id,zip,f,t,d,k,s,e\n1,007,1,2024-01-02 03:04:05,2024-01-02,true,x,\n"
    content += b'2,1,1.5,,,FALSE,"1",\n'
    schema = CSV.infer_file(io.BytesIO(content))
    assert schema is not None
    assert [str(f.type) for f in schema] == [
        "int64",
        "string",
        "double",
        "timestamp[us, tz=UTC]",
        "date32[day]",
        "bool",
        "string",
        "string",
    ]
    assert CSV.infer_file(io.BytesIO(b"")) is None


@pytest.mark.parametrize("text", ["x\r\ny", "x\ry", "x\ny", "x\r\r\ny\r", "\r\n", "\r"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_inside_quotes_are_kept(text: str, end: bytes) -> None:
    written_file = written(CSV, batch([{"a": 1, "b": text}, {"a": 2, "b": "z"}], AB))
    assert read(CSV, written_file, AB)[0] == [{"a": 1, "b": text}, {"a": 2, "b": "z"}]
    content = end.join([b"a,b", b'1,"%s"' % text.encode(), b"2,z", b""])
    assert read(CSV, content, AB)[0] == [{"a": 1, "b": text}, {"a": 2, "b": "z"}]


@pytest.mark.parametrize("last", [b"", b"\r"])
def test_lines_may_end_with_carriage_return_alone(last: bytes) -> None:
    content = b"\r".join([b"a,b", b"1,x", b"", b'2,"y\rz"', b"bad,w", b"3,v"]) + last
    rows, places, asked = read(CSV, content, AB)
    assert rows == [{"a": 1, "b": "x"}, {"a": 2, "b": "y\rz"}, {"a": 3, "b": "v"}]
    assert places == [2, 4, 7]
    assert [(bad.position, bad.payload) for bad in asked.bad] == [(6, b"bad,w")]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=4), st.sampled_from(LINE_ENDS)), max_size=20
    ),
    st.integers(1, 9),
)
def test_lines_of_every_line_end_in_blocks_of_every_size(
    pairs: list[tuple[str, bytes]], block: int
) -> None:
    content = b"".join(text.encode() + end for text, end in pairs)
    blocks = list(read_lines(io.BytesIO(content), block=block))
    texts = [text.decode() for part in blocks for text in part.texts.to_pylist()]
    ends = [LINE_ENDS[end] for part in blocks for end in part.ends]
    assert list(zip(texts, ends, strict=True)) == pairs
    assert [number for part in blocks for number in part.numbers] == [*range(1, len(pairs) + 1)]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_line_that_is_too_long_with_every_line_end(end: bytes) -> None:
    content = end.join([b"a", b"x" * 1000, b"b", b"y" * 1000])
    blocks = list(read_lines(io.BytesIO(content), block=7, max_length=100))
    assert [text for part in blocks for text in part.texts.to_pylist()] == [b"a", b"b"]
    assert [number for part in blocks for number, _ in part.too_long] == [2, 4]


def test_undecodable_text_of_another_encoding_is_a_bad_record() -> None:
    csv = Csv(CsvConfig(columns=["a", "b"], encoding="utf-16"))
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    good = "1,☂".encode("utf-16")
    for bad in (good + b"x", good[:-2] + b"\x00\xdc", good[:-2] + b"\x00\xdca\0"):
        found = csv.rows(binary([good, bad, good]), schema)
        assert found.rows.column("b").to_pylist() == ["☂", "☂"]
        assert [(failure.index, failure.text) for failure in found.failures] == [(1, bad)]


def test_times_have_the_form_of_json() -> None:
    noon = dt.datetime(2024, 1, 2, 12, 0, 0, 120_000)
    for type_, expected in [
        (pa.timestamp("us", "UTC"), b"2024-01-02T12:00:00.120Z"),
        (pa.timestamp("us"), b"2024-01-02T12:00:00.120"),
    ]:
        rows = pa.record_batch({"at": pa.array([noon, None], type_)})
        csv = Csv(Csv.config_type()).encode(rows).payloads.to_pylist()
        json = Json(Json.config_type()).encode(rows).payloads.to_pylist()
        assert csv == [expected, b""]
        assert json[0] == b'{"at":"%b"}' % expected
