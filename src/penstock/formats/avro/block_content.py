"""The content of compressed blocks of Avro object containers, in bounded memory."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.core.units import size_text
from penstock.sdk.encoding.buffered_reader import buffered_reader
from penstock.sdk.encoding.decompression import (
    CHUNK_BYTES,
    MAX_RATIO,
    MEMBERS,
    check_ratio,
    decompress_chunk,
)
from penstock.sdk.encoding.lines import MAX_LENGTH

_CRC_BYTES = 4


class BoundedInput(io.RawIOBase):
    """A stream of chunks.

    Raises DecodeError if more than `MAX_LENGTH` bytes are read between two calls of `begin_value`,
    unless `bounded` is unset. `size` is the number of all bytes read.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._ready = memoryview(b"")
        self._value_size = 0
        self.size = 0
        self.bounded = True

    def begin_value(self) -> None:
        """Marks the start of a value."""
        self._value_size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._ready = memoryview(chunk)
        if self.bounded and self._value_size > MAX_LENGTH:
            raise DecodeError(
                f"expected a value of at most {size_text(MAX_LENGTH)}, found more", code="too-large"
            )
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        self._value_size += len(part)
        self.size += len(part)
        return len(part)


class CompressedBlock:
    """The bytes of a block in a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.remaining = file, size

    def read(self, size: int) -> bytes:
        """Returns the next bytes of the block, none at its end. Raises EOFError."""
        data = self._file.read(min(size, self.remaining))
        if not data and self.remaining:
            raise EOFError
        self.remaining -= len(data)
        return data

    def read_all(self) -> bytes:
        """Returns the remaining bytes. Raises DecodeError for more than `MAX_LENGTH` bytes."""
        _check_block_size(self.remaining)
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yields the bytes of the block."""
        while data := self.read(CHUNK_BYTES):
            yield data

    def skip(self) -> None:
        """Skips the remaining bytes of the block."""
        for _ in self.chunks():
            pass


class Decompression:
    """The decompression of the blocks of a container.

    The ratio of all blocks is limited. `max_size` limits the decompressed size of all blocks.
    """

    def __init__(self, codec: str, max_size: int | None = None) -> None:
        """Raises DecodeError for an unknown codec."""
        if codec not in _CODECS:
            expected = ", ".join(f'"{name}"' for name in _CODECS)
            raise DecodeError(
                f'the codec "{codec}" is not supported: expected {expected}', code="not-avro"
            )
        self._decompress = _CODECS[codec]
        self._max_size = max_size
        self._size = self._compressed_size = 0

    def open(self, block: CompressedBlock) -> BoundedInput:
        """Returns the content of a block, which raises DecodeError beyond a limit."""
        self._compressed_size += block.remaining
        return BoundedInput(self._limited(block))

    def check_count(self, count: int) -> None:
        """Raises DecodeError if `count` values without bytes exceed the ratio."""
        check_ratio(count, self._compressed_size, MAX_RATIO)

    def _limited(self, block: CompressedBlock) -> Iterator[bytes]:
        for chunk in self._decompress(block):
            self._size += len(chunk)
            check_ratio(self._size, self._compressed_size, MAX_RATIO)
            if self._max_size is not None and self._size > self._max_size:
                raise DecodeError(
                    f"expected content of at most {size_text(self._max_size)}, found more",
                    code="too-large",
                )
            yield chunk


def _check_block_size(size: int) -> None:
    if size > MAX_LENGTH:
        raise DecodeError(
            f"expected a block of at most {size_text(MAX_LENGTH)}, found {size_text(size)}",
            code="too-large",
        )


def _decompress_member(name: str) -> Callable[[CompressedBlock], Iterator[bytes]]:
    def decompress(block: CompressedBlock) -> Iterator[bytes]:
        member = MEMBERS[name]()
        for data in block.chunks():
            yield from decompress_chunk(member, data)
            if member.eof:
                return  # Some writers add a part of a checksum.

    return decompress


def _decompress_zstandard(block: CompressedBlock) -> Iterator[bytes]:
    file = pa.PythonFile(buffered_reader(block), mode="r")  # type: ignore[arg-type]
    with pa.CompressedInputStream(file, "zstd") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _decompress_snappy(block: CompressedBlock) -> Iterator[bytes]:
    data = block.read_all()
    compressed, crc = data[:-_CRC_BYTES], data[-_CRC_BYTES:]
    size = _snappy_size(compressed)
    _check_block_size(size)
    content: bytes = pa.decompress(compressed, size, codec="snappy", asbytes=True)
    if zlib.crc32(content).to_bytes(_CRC_BYTES, "big") != crc:
        raise DecodeError("the checksum of a block does not match its content", code="not-avro")
    for start in range(0, size, CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


def _snappy_size(compressed: bytes) -> int:
    """Returns the decompressed size, a varint at the start of the data."""
    size = 0
    for index, byte in enumerate(compressed[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise EOFError


_CODECS: dict[str, Callable[[CompressedBlock], Iterator[bytes]]] = {
    "null": CompressedBlock.chunks,
    "deflate": _decompress_member("deflate"),
    "bzip2": _decompress_member("bz2"),
    "xz": _decompress_member("xz"),
    "zstandard": _decompress_zstandard,
    "snappy": _decompress_snappy,
}
