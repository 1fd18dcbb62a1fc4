"""Records of several lines, divided by the start of a record: as a simple oracle divides them."""

from __future__ import annotations

import io
import re
from typing import Any

import pyarrow as pa
import pytest
from format_samples import Forward, batch, read, written
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.files import segments
from penstock.formats.text import Text, TextConfig
from penstock.sdk import Read
from penstock.sdk.encoding import line_records, lines
from penstock.sdk.encoding.line_records import RecordStart, last_start, read_records

VALUE = pa.schema([("value", pa.string())])
START = RecordStart("^[0-9]")
TEXT = Text(TextConfig(record_start="^[0-9]"))
LIMIT = 12
PIECES = [b"1", b"2", b"a", b" at", b"\xc3\xa9", b"\r", b"\n", b"\n", b"\r\n", b"xxxxxxx"]
contents = st.lists(st.sampled_from(PIECES)).map(b"".join)


def oracle(content: bytes, limit: int = 1 << 20, inside: bool = False) -> list[Any]:
    """The first line of each record with its text, or with the start of a long one."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content and not content.endswith(b"\n"):
        content += b"\n"
    records: list[tuple[int, list[bytes]]] = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if re.match(rb"[0-9]", line[:LIMIT]):
            records.append((number, []))
        elif not records:
            records.append((1, []))
            if inside:
                records[0] = (0, [])
        records[-1][1].append(line.removesuffix(b"\r"))
    joined = [(number, b"\n".join(each)) for number, each in records if number]
    return [
        (number, text if len(text) <= limit else (text[:LIMIT], "too-large"))
        for number, text in joined
        if text.strip(b"\n") or len(text) > limit
    ]


def records_of(file: Any, start: RecordStart = START, **options: Any) -> list[Any]:
    found: list[Any] = []
    for texts, numbers, bad in read_records(file, start, **options):
        found += zip(numbers.tolist(), texts.to_pylist(), strict=True)
        found += [(number, (text, error.code)) for number, text, error in bad]
    return sorted(found)


@pytest.mark.slow
@given(contents, st.integers(1, 30), st.integers(1, 30), st.sampled_from([12, 40]), st.booleans())
def test_records_are_those_of_the_oracle(
    content: bytes, chunk: int, block: int, limit: int, inside: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (lines, line_records):
            patch.setattr(module, "LINE_START", LIMIT)
        start = RecordStart("^[0-9]", limit)
        found = records_of(Forward(content, chunk), start, block=block, inside=inside)
    assert found == oracle(content, limit, inside)


def test_byte_order_mark_and_encodings() -> None:
    content = "\ufeff1 é\n at\r\n\n2".encode()
    assert read(TEXT, content, VALUE)[:2] == ([{"value": "1 é\n at\n"}, {"value": "2"}], [1, 4])
    accented = Text(TextConfig(record_start="^é", encoding="latin-1"))
    content = "é1\n at\né2\n".encode("latin-1")
    assert read(accented, content, VALUE)[0] == [{"value": "é1\n at"}, {"value": "é2"}]
    assert accented.last_record_start(content) == 7
    wide = "1 é\n at\n2\n".encode("utf-16")
    assert read(TEXT, wide, VALUE)[0] == [{"value": "1 é\n at"}, {"value": "2"}]
    assert not TEXT.is_divisible(wide)


def test_invalid_utf_8_fails_its_record() -> None:
    rows, places, asked = read(TEXT, b"1\n \xff\n2\n", VALUE)
    assert (rows, places) == ([{"value": "2"}], [3])
    assert [(bad.payload, bad.position) for bad in asked.bad] == [(b"1\n \xff", 1)]


@pytest.mark.slow
@given(st.lists(st.sampled_from([b"1\n", b"a\n", b"\r\n", b"2\r\n", b"long" * 3000 + b"\n"])))
def test_the_last_start(some: list[bytes]) -> None:
    content = b"".join(some)
    at = [sum(map(len, some[:i])) for i, line in enumerate(some) if line[:1].isdigit()]
    assert last_start(content, START) == (at[-1] if at else None)


@pytest.mark.slow
@given(contents, st.integers(1, 20), st.integers(1, 40))
def test_ranges_have_whole_records(content: bytes, chunk: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "CHUNK_BYTES", chunk)
        patch.setattr(segments, "SEGMENT_BYTES", size)
        ranges = list(
            segments.record_segments(
                io.BytesIO(content), 0, len(content), "file", TEXT.last_record_start
            )
        )
    found, line, end = [], 0, 0
    for start, stop, count, ends_inside in ranges:
        assert start == end and not ends_inside
        part = content[start:stop]
        found += [(line + number, text) for number, text in records_of(io.BytesIO(part))]
        line, end = line + count, stop
    assert end == len(content)
    assert found == oracle(content)


def test_a_failed_read_ends_in_a_bad_record() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if data := super().read(size):
                return data
            raise EOFError("truncated")

    asked, rows = Read(), []
    with pytest.raises(EOFError):
        for some, _ in TEXT.read_file(Broken(b"1\n2\n at\n"), VALUE, "file", asked):
            rows += some.to_pylist()
    assert rows == [{"value": "1"}]
    assert [(bad.payload, bad.position, bad.error.code) for bad in asked.bad] == [
        (b"2\n at", 2, "cut-off")
    ]


@pytest.mark.slow
@given(st.lists(st.text(alphabet="1a\r\n", max_size=8)))
def test_written_texts_are_read_back(values: list[str]) -> None:
    out = io.BytesIO()
    rows = batch([{"value": value} for value in values], VALUE)
    encoded = TEXT.file_writer(out, VALUE).write(rows)
    failed = {} if encoded is None else {failure[0]: failure.error for failure in encoded.failures}
    kept = [value for at, value in enumerate(values) if at not in failed]
    assert read(TEXT, out.getvalue(), VALUE)[0] == [{"value": value} for value in kept]
    for at, value in enumerate(values):
        alone = oracle(value.encode() + b"\n") == [(1, value.encode())]
        assert (at not in failed) == (alone and value[0].isdigit())
    assert {error.code for error in failed.values()} <= {"not-one-record"}


def test_a_rejected_record_is_read_alone() -> None:
    rows = [some.to_pylist() for some, _ in TEXT.read_record(b"a\n1\n\n", b"", VALUE, "f", Read())]
    assert rows == [[{"value": "a\n1\n\n"}]]


def test_texts_of_several_lines_need_the_option() -> None:
    rows = batch([{"value": "1\n at"}], VALUE)
    assert written(TEXT, rows) == b"1\n at\n"
    assert written(Text(TextConfig()), rows) == b""


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "expected a regular expression"),
        ("(", "missing )"),
        ("(?!at)", "without lookaround and back-references"),
        (r"(a)\1", "without lookaround and back-references"),
        ("(((a{100}){100}){100}){100}", "invalid regular expression"),
    ],
)
def test_invalid_expressions(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        RecordStart(pattern)


def test_an_expression_takes_linear_time() -> None:
    text = b"a" * 3_000_000
    assert not START.matches(pa.array([text])).any()
    assert not RecordStart("^(a+)+$").matches(pa.array([text + b"b"])).any()
