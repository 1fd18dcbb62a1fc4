"""Encodings of files and payloads of text and JSON."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from format_samples import binary, read
from pydantic import ValidationError

from penstock.formats.json import Json, JsonConfig
from penstock.formats.json.plain import PlainJson
from penstock.formats.text import Text, TextConfig
from penstock.sdk import FileFormat, Read

VALUE = pa.schema([("value", pa.string())])
FORMATS: dict[str, tuple[type[Any], type[Any], str]] = {
    "text": (Text, TextConfig, "{}"),
    "json": (PlainJson, JsonConfig, '{{"value": "{}"}}'),
}


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make(kind: str, **options: Any) -> FileFormat[Any]:
    format_, config, _ = FORMATS[kind]
    made: FileFormat[Any] = format_(config(**options))
    return made


def content(kind: str, *values: str) -> str:
    return "".join(FORMATS[kind][2].format(value) + "\r\n" for value in values)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le-bom", "utf-16-be-bom"]
)
def test_byte_order_mark_determines_the_encoding_of_lines(kind: str, encoding: str) -> None:
    text = content(kind, "é☂", "\N{CYRILLIC SMALL LETTER EN}", "\u0a0d\u0d0a")
    if encoding.endswith("-bom"):
        text, encoding = "\ufeff" + text, encoding.removesuffix("-bom")
    rows, places, asked = read(make(kind), text.encode(encoding), VALUE)
    assert [row["value"] for row in rows] == ["é☂", "н", "\u0a0d\u0d0a"]
    assert (places, asked.bad) == ([1, 2, 3], [])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le", "utf-32-be", "cp1252"])
def test_encoding_is_an_option_of_lines(kind: str, encoding: str) -> None:
    format_ = make(kind, encoding=encoding)
    rows, _, asked = read(format_, content(kind, "é", "b").encode(encoding), VALUE)
    assert ([row["value"] for row in rows], asked.bad) == (["é", "b"], [])
    payload = FORMATS[kind][2].format("é").encode(encoding)
    assert format_.decode(binary([payload]), VALUE).rows.to_pylist() == [{"value": "é"}]


def test_undecodable_lines_are_rejected_as_they_can_be_replayed(kind: str) -> None:
    given = content(kind, "é", "b", "c").encode("utf-16")
    good, half = "b".encode("utf-16-le"), b"\x00\xd8"
    rows, _, asked = read(make(kind), given.replace(good, half, 1), VALUE)
    assert [row["value"] for row in rows] == ["é", "c"]
    assert [(bad.position, bad.error.code) for bad in asked.bad] == [(2, "not-utf8")]
    mended = content(kind, "☂").strip().encode()
    (replayed, _), *_ = make(kind, encoding="utf-16").read_record(mended, b"", VALUE, "f", Read())
    assert replayed.to_pylist() == [{"value": "☂"}]


def test_utf16_without_a_byte_order_mark_is_not_json() -> None:
    rows, _, asked = read(make("json"), content("json", "a").encode("utf-16-le"), VALUE)
    assert rows == []
    error = asked.bad[0].error
    assert (error.code, error.hint) == (
        "not-json",
        "Set encoding to that of the text, such as utf-16-le.",
    )


def test_the_columns_of_a_file_in_utf16_are_inferred() -> None:
    found = make("json").infer_file(io.BytesIO(content("json", "a").encode("utf-16")))
    assert found == VALUE


@pytest.mark.parametrize(
    "options", [{"encoding": "utf-17"}, {"encoding": "utf-16", "framing": "lines"}]
)
def test_wrong_encodings_of_lines(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"expected auto, or an|framing: lines requires"):
        make(kind, **options)


def test_json_of_a_registry_has_no_encoding() -> None:
    with pytest.raises(ValidationError, match="expected no encoding with a registry"):
        Json(JsonConfig(encoding="utf-16", registry={"url": "http://127.0.0.1:1"}))


@pytest.mark.parametrize(
    ("encoding", "start", "divisible"),
    [
        ("auto", b"{", True),
        ("auto", b"\xff\xfe{\0", False),
        ("utf-8", b"\xff\xfe{\0", True),
        ("latin-1", b"{", True),
        ("utf-16-le", b"{\0", False),
        ("cp037", b"\xc0", False),
    ],
)
def test_only_files_whose_line_ends_are_bytes_are_divisible(
    kind: str, encoding: str, start: bytes, divisible: bool
) -> None:
    assert make(kind, encoding=encoding).is_divisible(start) is divisible


def test_a_range_has_no_byte_order_mark(kind: str) -> None:
    rest = b"\xff\xfe\n" + content(kind, "b").encode()
    rows, _, asked = read(make(kind).without_start(), rest, VALUE)
    assert [row["value"] for row in rows] == ["b"]
    assert [bad.position for bad in asked.bad] == [1]
