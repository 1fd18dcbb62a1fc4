from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from format_samples import TORTURE, Forward, batch, code, outcome, read, written
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import PlanError
from penstock.formats.json import Json, JsonConfig
from penstock.formats.raw import Raw, RawConfig
from penstock.formats.text import Text, TextConfig
from penstock.sdk.encoding.lines import read_lines, split_payloads

TEXT, RAW = Text(TextConfig()), Raw(RawConfig())
VALUE = pa.schema([("value", pa.string())])
BYTES = pa.schema([("value", pa.binary())])


def lines(content: bytes, **options: Any) -> list[tuple[int, bytes]]:
    found = []
    for some in read_lines(Forward(content, 7), **options):
        found += list(zip(some.numbers.tolist(), some.texts.to_pylist(), strict=True))
    return found


@pytest.mark.slow
@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b""))))
def test_lines(texts: list[bytes]) -> None:
    expected = [(i, text) for i, text in enumerate(texts, 1)]
    content = b"".join(text + b"\n" for text in texts)
    assert lines(b"\xef\xbb\xbf" + content, block=8, blank=True) == expected
    windows = b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")
    assert lines(windows, block=8) == [each for each in expected if each[1]]


def test_the_lines_of_payloads() -> None:
    given = pa.array([b"a\nb\r\n\n", None, b"", b" \n\xff \n", b"c"], pa.binary())
    found = split_payloads(given.slice(0))
    assert found.texts.to_pylist() == [b"a", b"b", None, b"\xff ", b"c"]
    assert found[1].to_pylist() == [0, 0, 1, 3, 4]
    assert split_payloads(given.slice(3)).texts.to_pylist() == [b"\xff ", b"c"]
    nothing = split_payloads(pa.array([], pa.binary()))
    assert (len(nothing.texts), len(nothing[1])) == (0, 0)


@pytest.mark.slow
@given(st.lists(st.none() | st.binary(max_size=9).map(lambda text: text.replace(b"x", b"\n"))))
def test_each_line_is_of_its_payload(payloads: list[bytes | None]) -> None:
    found = split_payloads(pa.array(payloads, pa.binary()))
    expected = [
        (text if text is None else text.removesuffix(b"\r"), at)
        for at, payload in enumerate(payloads)
        for text in (payload.split(b"\n") if payload is not None else [None])
        if text is None or text.strip(b" \t\n\r\f")
    ]
    assert list(zip(found.texts.to_pylist(), found[1].to_pylist(), strict=True)) == expected


def test_a_line_that_is_too_long() -> None:
    content = b"a\n" + b"x" * 1000 + b"\nb\n" + b"y" * 1000
    some = list(read_lines(Forward(content, 50), block=50, max_length=100))
    numbers = [n for each in some for n in each.numbers.tolist()]
    bad = [(n, head[:1]) for each in some for n, head in each.too_long]
    assert numbers == [1, 3] and bad == [(2, b"x"), (4, b"y")]


def test_text() -> None:
    assert code(TEXT, b"\xff", VALUE) == "not-utf8"
    found = outcome(TEXT, [b"x", b"", "é\n😀".encode(), b"\xe9", b"y"], VALUE)
    assert found.rows.column(0).to_pylist() == ["x", "", "é\n😀", "y"]
    outcome(TEXT, TORTURE, VALUE)


def test_text_files() -> None:
    rows, places, asked = read(TEXT, b"a\r\n\n\xff\nb", VALUE)
    assert ([row["value"] for row in rows], places) == (["a", "b"], [1, 4])
    assert [(bad.position, bad.payload, bad.error.code) for bad in asked.bad] == [
        (3, b"\xff", "not-utf8")
    ]
    keep = Text(TextConfig(keep_blank=True))
    content = written(
        keep, batch([{"value": "a"}, {"value": ""}, {"value": "c\nd"}, {"value": None}], VALUE)
    )
    assert content == b"a\n\n"
    assert read(keep, content, VALUE)[1] == [1, 2]


@pytest.mark.parametrize(("format_", "schema"), [(TEXT, VALUE), (RAW, VALUE), (RAW, BYTES)])
def test_records_without_value(format_: Any, schema: pa.Schema) -> None:
    found = outcome(format_, [b"x", None, b"", None], schema)
    assert found.rows.column(0).is_valid().to_pylist() == [True, False, True, False]
    assert [failure.index for failure in format_.encode(found.rows).failures] == [1, 3]
    never = pa.schema([schema.field(0).with_nullable(False)])
    found = outcome(format_, [b"x", None, b""], never)
    assert [(bad.index, bad.error.code) for bad in found.failures] == [(1, "no-value")]


def test_raw() -> None:
    payloads: list[bytes | None] = [b"", b"\0\xff", b"x" * 10_000_000]
    found = outcome(RAW, payloads, BYTES)
    assert found.rows.column(0).to_pylist() == payloads
    assert RAW.encode(found.rows).payloads.to_pylist() == payloads
    assert code(RAW, b"\xff", VALUE) == "not-utf8"
    assert read(RAW, b"a\nb", BYTES)[:2] == ([{"value": b"a\nb"}], [1])
    two = batch(
        [{"a": "x", "b": 1}, {"a": None, "b": 2}],
        pa.schema([("a", pa.string()), ("b", pa.int64())]),
    )
    encoded = Raw(RawConfig(column="a")).encode(two)
    assert encoded.payloads.to_pylist() == [b"x"] and encoded.failures[0].error.code == "no-value"
    with pytest.raises(PlanError, match="one column"):
        RAW.encode(two)
    with pytest.raises(PlanError, match="no column"):
        Raw(RawConfig(column="c")).encode(two)


def test_a_payload_of_several_lines_is_rows_of_its_own() -> None:
    text = Text(TextConfig(framing="lines"))
    payloads = pa.array([b"a\n\xff\nb", b"c"], pa.binary())
    rows, index, bad = text.rows(payloads, VALUE)
    assert (rows.to_pylist(), index.to_pylist()) == (
        [{"value": "a"}, {"value": "b"}, {"value": "c"}],
        [0, 0, 1],
    )
    assert [(each[0], each.text, each.part, each.error.code) for each in bad] == [
        (0, b"\xff", 1, "not-utf8")
    ]


def test_a_carriage_return_is_part_of_a_line_of_text() -> None:
    assert read(TEXT, b"10%\r20%\rdone\r\nb", VALUE)[0] == [
        {"value": "10%\r20%\rdone"},
        {"value": "b"},
    ]
    values = ["x\ry", "x\r", "x\n", "z"]
    content = written(TEXT, batch([{"value": value} for value in values], VALUE))
    assert content == b"x\ry\nz\n"
    failures = TEXT.file_writer(io.BytesIO(), VALUE).write(batch([{"value": "x\r"}], VALUE))
    assert failures is not None
    assert [failure.error.code for failure in failures.failures] == ["several-lines"]


def test_json_objects_separated_by_carriage_returns_are_one_invalid_line() -> None:
    schema = pa.schema([("a", pa.int64())])
    rows, _, asked = read(Json(JsonConfig()), b'{"a": 1}\r{"a": 2}\r', schema)
    assert rows == []
    assert [bad.position for bad in asked.bad] == [1]
