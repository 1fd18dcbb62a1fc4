"""Files whose content is not compressed as their extension says."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.connectors.files.compression import compressed_stream
from penstock.connectors.files.signature import check_signature
from penstock.core.errors import DecodeError, Permanent, PlanError
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.sdk import Read

LINES = b'{"id": 1}\n{"id": 2}\n'
SCHEMA = pa.schema([("id", pa.int64())])


def source(path: Path, content: bytes) -> FilesSource:
    path.write_bytes(content)
    files = FilesSource(FilesSourceConfig(path=str(path)))
    files.format, files.columns = Json(JsonConfig()), SCHEMA
    return files


def rejected(files: FilesSource) -> Any:
    read = Read()
    for partition in files.partitions({"files": 0}, files.latest_offset({"files": 0})):
        assert list(files.read(partition, read)) == []
    (bad,) = read.bad
    return bad


@pytest.mark.parametrize(
    ("name", "content", "found", "compression"),
    [
        ("a.jsonl.gz", LINES, "gzip, found uncompressed text", "none"),
        ("a.jsonl.gz", lzma.compress(LINES), "gzip, found one compressed with xz", "xz"),
        ("a.jsonl.zst", gzip.compress(LINES), "zstd, found one compressed with gzip", "gzip"),
        ("a.jsonl.bz2", b"\x81\x02\x03" * 50, "bz2, found other data", "none"),
        ("a.jsonl.xz", bz2.compress(LINES), "xz, found one compressed with bz2", "bz2"),
        ("a.jsonl.lz4", LINES, "lz4, found uncompressed text", "none"),
    ],
    ids=["gzip-text", "gzip-xz", "zstd-gzip", "bz2-other", "xz-bz2", "lz4-text"],
)
def test_file_of_another_kind(
    tmp_path: Path, name: str, content: bytes, found: str, compression: str
) -> None:
    files = source(tmp_path / name, content)
    bad = rejected(files)
    expected = f"cannot read {tmp_path}/{name}: expected a file compressed with {found}"
    assert bad.error.message == expected
    assert bad.error.code == "corrupt-file" and bad.payload is None
    assert bad.error.hint == f"Rename the file, or set compression: {compression}."
    with pytest.raises(PlanError) as raised:
        files.infer_schema()
    assert (raised.value.message, raised.value.hint) == (expected, bad.error.hint)


def test_inference_skips_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl.gz").write_bytes(gzip.compress(LINES))
    files = source(tmp_path / "bad.jsonl.gz", LINES)
    files.config = FilesSourceConfig(path=str(tmp_path))
    assert files.infer_schema() == SCHEMA


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zstd", "lz4"])
def test_incomplete_signature_is_not_another_kind(codec: str) -> None:
    for start in (b"", b"\x1f", b"\0" * 100):
        check_signature(start, codec)
    with pytest.raises(DecodeError, match="found uncompressed text"):
        check_signature(b"id,name", codec)
    check_signature(pa.compress(b"x", codec, asbytes=True) if codec == "zstd" else b"", codec)


def test_brotli_has_no_signature() -> None:
    check_signature(LINES, "brotli")


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zstd", "lz4"])
@pytest.mark.parametrize("format_", [Json(JsonConfig()), Csv(CsvConfig())], ids=["json", "csv"])
def test_compressed_content_without_its_extension(tmp_path: Path, codec: str, format_: Any) -> None:
    out = io.BytesIO()
    stream = compressed_stream(out, codec)
    stream.write(LINES * 100)
    stream.close()
    files = source(tmp_path / "a.data", out.getvalue())
    files.format = format_
    expected = (
        f"cannot read {tmp_path}/a.data: expected an uncompressed file, found one compressed "
        f"with {codec}"
    )
    bad = rejected(files)
    assert bad.error.message == expected and bad.error.code == "corrupt-file"
    assert bad.error.hint == f"Rename the file, or set compression: {codec}."
    with pytest.raises(Permanent) as found:
        files.check()
    with pytest.raises(PlanError) as inferred:
        files.infer_schema()
    assert found.value.message == inferred.value.message == expected


def test_check_finds_a_file_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="expected a file compressed with gzip, found uncompressed"):
        source(tmp_path / "a.jsonl.gz", LINES).check()
