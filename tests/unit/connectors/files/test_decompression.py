"""Decompression in bounded memory, and the bound of the ratio."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig, decompression
from penstock.connectors.files.decompression import DecompressedStream
from penstock.formats.text import Text, TextConfig
from penstock.sdk import Context, Read
from penstock.sdk.encoding import decompression as sdk_decompression

LINE = b"x" * 99_999 + b"\n"
CODECS = {"gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst"}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress,
}  # fmt: skip


def compress(codec: str, content: bytes) -> bytes:
    if codec in COMPRESS:
        return COMPRESS[codec](content)
    return cast(bytes, pa.compress(content, codec, asbytes=True))


def read_to_end(stream: DecompressedStream) -> tuple[int, int]:
    """Returns the size of the content and the peak of memory while it is read, in bytes."""
    tracemalloc.start()
    try:
        size = 0
        while chunk := stream.read(1 << 16):
            size += len(chunk)
        return size, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.quick(1)
@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz"])
@pytest.mark.parametrize("lines", [True, False])
def test_memory_does_not_depend_on_the_decompressed_size(codec: str, lines: bool) -> None:
    content = io.BytesIO(compress(codec, LINE * 200))
    stream = DecompressedStream(content, codec, lines)
    size, peak = read_to_end(stream)
    assert (size, stream.failure) == (20_000_000, None)
    assert peak < 12_000_000


@pytest.mark.slow
def test_memory_does_not_depend_on_the_length_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "MAX_LENGTH", 1_000_000)
    stream = DecompressedStream(io.BytesIO(bz2.compress(b"x" * 20_000_000)), "bz2", lines=True)
    size, peak = read_to_end(stream)
    assert size == 20_000_000
    assert peak < 6_000_000


@pytest.mark.quick(1)
@pytest.mark.parametrize("codec", CODECS)
def test_content_beyond_the_maximum_ratio_is_one_dead_letter(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_decompression, "UNCHECKED_BYTES", 1_000_000)
    path = tmp_path / f"in.txt{CODECS[codec]}"
    path.write_bytes(compress(codec, LINE * 100))
    source = FilesSource(
        FilesSourceConfig.model_validate({"path": str(path)}), Context(state=tmp_path / "state")
    )
    source.format, source.columns = Text(TextConfig()), pa.schema([("value", pa.string())])
    read = Read()
    (partition,) = source.partitions({"files": 0}, source.latest_offset({"files": 0}))
    rows = sum(batch.num_rows for batch in source.read(partition, read))
    (letter,) = read.bad
    assert 9 <= rows < 100
    assert (letter.origin, letter.position) == (str(path), rows + 1)
    assert letter.error.code == "compression-ratio"
    assert "1,000 times" in str(letter.error.detail) and "Decompress" in str(letter.error.hint)


@pytest.mark.slow
def test_small_content_has_no_maximum_ratio() -> None:
    stream: Any = DecompressedStream(io.BytesIO(bz2.compress(LINE * 100)), "bz2", lines=True)
    assert len(stream.read()) == 10_000_000
    assert stream.failure is None
