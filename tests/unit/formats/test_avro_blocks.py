"""Blocks of Avro object containers: codecs, and bounds of their content."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pytest
from format_samples import read

from penstock.core.errors import PlanError
from penstock.formats.avro import Avro, AvroConfig, block_content, contained
from penstock.sdk.encoding import decompression

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
COLUMNS = pa.schema([("a", pa.string())])
SYNC = b"s" * 16


def deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


def snappy(data: bytes) -> bytes:
    compressed = cast(bytes, pa.compress(data, "snappy", asbytes=True))
    return compressed + zlib.crc32(data).to_bytes(4, "big")


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes, "deflate": deflate, "bzip2": bz2.compress, "xz": lzma.compress,
    "zstandard": lambda data: cast(bytes, pa.compress(data, "zstd", asbytes=True)),
    "snappy": snappy,
}  # fmt: skip


def number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def block(count: int, compressed: bytes) -> bytes:
    return number(count) + text(compressed) + SYNC


def file_of(codec: str, *blocks: bytes, schema: Any = SCHEMA) -> bytes:
    head = b"Obj\x01" + number(2) + text(b"avro.codec") + text(codec.encode())
    head += text(b"avro.schema") + text(json.dumps(schema).encode()) + number(0) + SYNC
    return head + b"".join(blocks)


def rows_and_errors(
    content: bytes, columns: pa.Schema = COLUMNS
) -> tuple[list[Any], list[tuple[int, str]]]:
    rows, _, asked = read(Avro(AvroConfig()), content, columns)
    return rows, [(bad.position, bad.error.code) for bad in asked.bad]


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_of_each_codec_are_read(codec: str) -> None:
    compress = CODECS[codec]
    good = block(2, compress(text(b"x" * 200_000) + text(b"y")))
    empty = block(0, compress(b""))
    rows, errors = rows_and_errors(file_of(codec, good, empty, block(1, compress(text(b"z")))))
    assert [row["a"][:1] for row in rows] == ["x", "y", "z"]
    assert errors == []


@pytest.mark.parametrize("codec", CODECS)
def test_invalid_block_costs_itself_only(codec: str) -> None:
    compress = CODECS[codec]
    for damaged in (
        block(2, compress(text(b"x") + b"\x40")),  # the second value is cut off
        block(1, compress(text(b"x") + text(b"more"))),
    ):
        rows, errors = rows_and_errors(file_of(codec, damaged, block(1, compress(text(b"z")))))
        assert [row["a"] for row in rows] == ["x", "z"]
        assert errors == [(2, "not-avro")]


def test_corrupt_compressed_block_costs_itself_only() -> None:
    for codec, compress in CODECS.items():
        if codec != "null":
            corrupt = bytearray(compress(text(b"x" * 100)))
            corrupt[len(corrupt) // 2 :] = b"\xff" * (len(corrupt) - len(corrupt) // 2)
            content = file_of(codec, block(1, bytes(corrupt)), block(1, compress(text(b"z"))))
            rows, errors = rows_and_errors(content)
            assert [row["a"] for row in rows] == ["z"], codec
            assert errors == [(1, "not-avro")], codec


@pytest.mark.parametrize(
    "tail",
    [
        number(-1) + text(b"x") + SYNC,
        number(1 << 60) + text(text(b"x")) + b"another marker..",
        number(1) + number(-5) + SYNC,
        number(1) + number(1 << 62) + b"x",
        b"\xff" * 11,
        number(1) + text(text(b"x")) + b"another marker..",
    ],
    ids=["count", "huge-count", "length", "huge-length", "number", "marker"],
)
def test_invalid_frame_ends_the_file(tail: bytes) -> None:
    good = block(1, text(b"x"))
    rows, errors = rows_and_errors(file_of("null", good, tail, good))
    assert 1 <= len(rows) <= 3
    assert [code for _, code in errors] == ["not-avro"]


def test_unknown_codec_is_an_error_that_names_the_known_ones() -> None:
    _, _, asked = read(Avro(AvroConfig()), file_of("brotli", block(1, b"")), COLUMNS)
    (bad,) = asked.bad
    assert bad.error.message.startswith('the codec "brotli" is not supported: expected "null", ')


def zeros(codec: str, size: int) -> bytes:
    """A block of one text of `size` zero bytes."""
    return block(1, CODECS[codec](number(size) + bytes(size)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard"])
def test_memory_does_not_depend_on_the_decompressed_size(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_content, "MAX_LENGTH", 1_000_000)
    content = file_of(codec, zeros(codec, 30_000_000))
    tracemalloc.start()
    try:
        rows, errors = rows_and_errors(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (rows, errors) == ([], [(1, "too-large")])
    assert peak < 40_000_000  # the 30 MB are those that fastavro reserves for the text


def test_size_of_a_snappy_block_is_bounded_before_it_is_decompressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_content, "MAX_LENGTH", 1_000_000)
    assert rows_and_errors(file_of("snappy", zeros("snappy", 2_000_000))) == (
        [],
        [(1, "too-large")],
    )
    claim = b"\xff\xff\xff\xff\x0f" + b"\x00" * 20
    assert rows_and_errors(file_of("snappy", block(1, claim)))[1] == [(1, "too-large")]


@pytest.mark.quick(1)
@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard"])
def test_content_beyond_the_maximum_ratio_ends_the_file(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompression, "UNCHECKED_BYTES", 1_000_000)
    monkeypatch.setattr(block_content, "MAX_RATIO", 100)
    compressed = CODECS[codec](b"".join([text(bytes(99_998))] * 100))
    content = file_of(codec, block(100, compressed), block(1, CODECS[codec](text(b"z"))))
    rows, errors = rows_and_errors(content)
    assert len(rows) < 100
    assert errors == [(len(rows) + 1, "compression-ratio")]


@pytest.mark.slow
def test_values_without_bytes_are_bounded_by_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "UNCHECKED_BYTES", 25_000)
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "null"}]}
    rows, errors = rows_and_errors(file_of("null", block(1 << 30, b""), schema=schema))
    assert (len(rows), errors) == (30_000, [(30_001, "compression-ratio")])


def test_arrays_of_values_without_bytes_are_not_supported() -> None:
    empty = {"type": "record", "name": "e", "fields": [{"name": "n", "type": "null"}]}
    for items in ("null", empty, {"type": "fixed", "name": "f", "size": 0}):
        schema = {**SCHEMA, "fields": [{"name": "a", "type": {"type": "array", "items": items}}]}
        content = file_of("null", block(1, number(1 << 60)), schema=schema)
        assert rows_and_errors(content) == ([], [(1, "unsupported-type")])
        with pytest.raises(PlanError, match="array of values without bytes"):
            Avro(AvroConfig.model_validate({"schema": schema})).check_columns(pa.schema([]))


def test_size_of_a_payload_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contained, "MAX_LENGTH", 1_000_000)
    monkeypatch.setattr(contained, "_MAX_VALUES", 1000)
    large = file_of("deflate", *[zeros("deflate", 400_000)] * 3)
    many = file_of("null", block(1001, text(b"x") * 1001))
    payloads = pa.array([large, many, file_of("null", block(1, text(b"x")))], pa.binary())
    rows, _, bad = Avro.create(AvroConfig(framing="container")).rows(payloads, COLUMNS)  # type: ignore[attr-defined]
    assert rows.to_pylist() == [{"a": "x"}]
    assert [(each.index, each.error.message) for each in bad] == [
        (0, "expected content of at most 1.0 MB, found more"),
        (1, "expected at most 1,000 values, found more"),
    ]


def test_header_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_content, "MAX_LENGTH", 1_000_000)
    head = b"Obj\x01" + number(1) + number(1 << 40) + bytes(4_000_000)
    assert rows_and_errors(head) == ([], [(1, "not-avro")])
    head = b"Obj\x01" + number(1) + number(3_500_000) + bytes(4_000_000)
    assert rows_and_errors(head) == ([], [(1, "too-large")])
    assert Avro(AvroConfig()).infer_file(io.BytesIO(head)) is None
