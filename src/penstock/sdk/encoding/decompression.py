"""Decompression in bounded memory, and the bound of its ratio."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from penstock.core.errors import DecodeError
from penstock.core.units import size_text

CHUNK_BYTES = 1 << 16
MAX_RATIO = 1000
UNCHECKED_BYTES = 64_000_000
"""The decompressed size up to which the ratio is not limited."""
XZ_MEMORY_BYTES = 256 << 20
DECOMPRESSION_ERRORS = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def check_ratio(size: int, compressed_size: int, max_ratio: int) -> None:
    """Raises DecodeError if content of `size` bytes exceeds `max_ratio` times its compressed size.

    The ratio of content of up to `UNCHECKED_BYTES` is not limited.
    """
    if size > UNCHECKED_BYTES and size > max_ratio * compressed_size:
        raise DecodeError(
            f"expected at most {max_ratio:,} times the compressed size, found more: "
            f"{size_text(size)} in {size_text(compressed_size)}",
            code="compression-ratio",
            hint="Decompress the file before it is read if you trust its origin.",
        )


class Member(Protocol):
    """A decompressor of one compressed member with bounded output."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZlibMember:
    """A member of zlib with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self, wbits: int) -> None:
        self._decompressor = zlib.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def needs_input(self) -> bool:
        return not self._decompressor.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        pending = self._decompressor.unconsumed_tail
        return self._decompressor.decompress(pending + data, max_length)


MEMBERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: _ZlibMember(31),
    "deflate": lambda: _ZlibMember(-15),
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES),
}


def decompress_chunk(member: Member, data: bytes) -> Iterator[bytes]:
    """Yields the content of compressed bytes until the member ends or expects more of them."""
    while True:
        content = member.decompress(data, CHUNK_BYTES)
        if content:
            yield content
        data = b""
        if member.eof or (member.needs_input and len(content) < CHUNK_BYTES):
            return
