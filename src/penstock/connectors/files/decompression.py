"""Streams that decompress, in bounded memory and up to a bounded ratio."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from penstock.connectors.files.signature import check_signature
from penstock.core.errors import DecodeError
from penstock.sdk.encoding.decompression import (
    CHUNK_BYTES,
    DECOMPRESSION_ERRORS,
    MAX_RATIO,
    MEMBERS,
    Member,
    check_ratio,
    decompress_chunk,
)
from penstock.sdk.encoding.lines import MAX_LENGTH


class DecompressedStream(io.RawIOBase):
    """The decompressed content of a file, up to the first corrupt byte.

    `failure` is the error of a corrupt file, or of a file whose content exceeds `max_ratio` times
    its compressed size. With `lines` the content of such a file ends after the last complete line,
    unless that line is too long.
    """

    def __init__(
        self, file: BinaryIO, codec: str, lines: bool, max_ratio: int | None = MAX_RATIO
    ) -> None:
        self._file = _CountedFile(file)
        self._chunks = _decompress(self._file, codec)
        self._max_ratio = max_ratio
        self._size = 0
        self._lines = lines
        self._partial_line = bytearray()
        self._ready = memoryview(b"")
        self._ended = False
        self.failure: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        filled = 0
        while filled < len(view) and (self._ready or self._next()):
            part = self._ready[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self._ready = self._ready[len(part) :]
            filled += len(part)
        return filled

    def _next(self) -> bool:
        """Decompresses the next chunk. Returns False at the end."""
        while not self._ready and not self._ended:
            try:
                chunk = next(self._chunks, None)
                self._check_ratio(len(chunk or b""))
            except (DecodeError, *DECOMPRESSION_ERRORS) as error:
                self.failure = error
                self._ended = True
                return False
            if chunk is None:
                self._ended = True
                self._ready = memoryview(bytes(self._partial_line))
            else:
                self._ready = memoryview(self._complete_lines(chunk) if self._lines else chunk)
        return bool(self._ready)

    def _check_ratio(self, count: int) -> None:
        self._size += count
        if self._max_ratio is not None:
            check_ratio(self._size, self._file.count, self._max_ratio)

    def _complete_lines(self, chunk: bytes) -> bytes:
        """Returns the complete lines up to the end of a chunk. A too long line is not delayed."""
        end = chunk.rfind(b"\n") + 1
        if not end and len(self._partial_line) > MAX_LENGTH:
            end = len(chunk)
        lines = b""
        if end:
            lines = bytes(self._partial_line) + chunk[:end]
            self._partial_line.clear()
        self._partial_line += chunk[end:]
        return lines

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _CountedFile:
    """A file whose `count` is the number of bytes read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.count += len(data)
        return data

    def close(self) -> None:
        self._file.close()


def _decompress(file: _CountedFile, codec: str) -> Iterator[bytes]:
    """Yields the decompressed content in chunks of at most `CHUNK_BYTES`."""
    first = file.read(CHUNK_BYTES)
    if not first:
        return
    check_signature(first, codec)
    if codec in MEMBERS:
        yield from _decompress_members(first, file, MEMBERS[codec])
        return
    stream = pa.CompressedInputStream(pa.PythonFile(_PrefixedStream(first, file), mode="r"), codec)
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _decompress_members(
    first: bytes, file: _CountedFile, new_member: Callable[[], Member]
) -> Iterator[bytes]:
    """Decompresses one or more concatenated members, as of `cat a.gz b.gz`."""
    member: Member | None = None
    data = first
    while data:
        if member is None:
            data = data.lstrip(b"\0")
            member = new_member() if data else None
        if member is not None:
            yield from decompress_chunk(member, data)
            data = member.unused_data if member.eof else b""
            member = None if member.eof else member
        data = data or file.read(CHUNK_BYTES)
    if member is not None:
        raise EOFError("the compressed file is truncated")


class _PrefixedStream(io.RawIOBase):
    """A file from its start, of which the first bytes have already been read."""

    def __init__(self, first: bytes, file: _CountedFile) -> None:
        self._first = first
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = size if size >= 0 else CHUNK_BYTES
        if not self._first:
            return self._file.read(size)
        part, self._first = self._first[:size], self._first[size:]
        return part
