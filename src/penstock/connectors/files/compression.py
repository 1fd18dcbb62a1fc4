"""Compressed files as streams, and what of a broken one can be trusted."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal, cast

import pyarrow as pa

Compression = Literal["auto", "none", "gzip", "bz2", "xz", "zstd", "lz4", "brotli"]

EXTENSIONS = {
    ".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz",
    ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".br": "brotli",
}  # fmt: skip
SUFFIX = {"gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "lz4": ".lz4", "brotli": ".br"}
CHUNK = 1 << 16


def codec_of(path: str, compression: str) -> str | None:
    """The codec of a file: as configured, or by its extension."""
    if compression == "auto":
        return next(
            (codec for end, codec in EXTENSIONS.items() if path.lower().endswith(end)), None
        )
    return None if compression == "none" else compression


def bare(name: str) -> str:
    """A file's name without the extension of its compression."""
    for end in EXTENSIONS:
        if name.lower().endswith(end):
            return name[: -len(end)]
    return name


class Window(io.RawIOBase):
    """Bytes `start` to `stop` of a file; remembers a failure of the file itself."""

    def __init__(self, file: BinaryIO, start: int = 0, stop: int | None = None) -> None:
        self._file = file
        self._start = start
        self._stop = stop
        self.failure: OSError | None = None
        if start:
            file.seek(start)
        self._at = start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if self._stop is not None:
            view = view[: max(0, self._stop - self._at)]
        try:
            count = cast(io.RawIOBase, self._file).readinto(view) or 0
        except OSError as error:
            self.failure = error
            raise
        self._at += count
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (self._start, self._at, 0)[whence]
        if whence == 2:
            base = self._stop if self._stop is not None else self._file.seek(0, 2)
        self._at = self._file.seek(base + offset)
        return self._at - self._start

    def tell(self) -> int:
        return self._at - self._start

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class Inflated(io.RawIOBase):
    """What a compressed file holds, up to where it is broken; `failure` says why it ends there.

    With `lines` the end is after the last whole line, so that what is read is what was written.
    """

    def __init__(self, file: BinaryIO, codec: str, lines: bool) -> None:
        self._file = file
        self._chunks = _inflate(file, codec)
        self._lines = lines
        self._held = bytearray()
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
        """Makes more bytes ready; False at the end."""
        while not self._ready and not self._ended:
            try:
                chunk = next(self._chunks, None)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                self.failure = error
                self._ended = True
                return False
            if chunk is None:
                self._ended = True
                self._ready = memoryview(bytes(self._held))
            elif not self._lines:
                self._ready = memoryview(chunk)
            else:
                end = chunk.rfind(b"\n") + 1
                if end:
                    self._ready = memoryview(bytes(self._held) + chunk[:end])
                    self._held.clear()
                self._held += chunk[end:]
        return bool(self._ready)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}


def _inflate(file: BinaryIO, codec: str) -> Iterator[bytes]:
    if codec in _DECOMPRESSORS:
        yield from _members(file, _DECOMPRESSORS[codec])
        return
    first = file.read(CHUNK)
    if not first:
        return
    stream = pa.CompressedInputStream(pa.PythonFile(_Replayed(first, file), mode="r"), codec)
    while chunk := stream.read(CHUNK):
        yield chunk


def _members(file: BinaryIO, fresh: Callable[[], Any]) -> Iterator[bytes]:
    """One or more compressed parts, one after the other, as `cat a.gz b.gz` makes them."""
    part = None
    waiting = file.read(CHUNK)
    while waiting:
        if part is None:
            waiting = waiting.lstrip(b"\0")
            part = fresh() if waiting else None
        if part is not None:
            if inflated := part.decompress(waiting):
                yield inflated
            waiting = part.unused_data if part.eof else b""
            part = None if part.eof else part
        waiting = waiting or file.read(CHUNK)
    if part is not None:
        raise EOFError("the file ends in the middle of its compressed content")


class _Replayed(io.RawIOBase):
    """A stream whose beginning was already read."""

    def __init__(self, first: bytes, file: BinaryIO) -> None:
        self._first = first
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._first:
            return self._file.read(size)
        part, self._first = self._first[:size], self._first[size:] if size >= 0 else b""
        return part if size >= 0 else part + self._file.read()


def deflated(file: BinaryIO, codec: str | None) -> BinaryIO:
    """A stream that compresses into `file`, which stays open when the stream is closed."""
    if codec is None:
        return file
    if codec == "xz":
        return cast(BinaryIO, lzma.LZMAFile(file, "wb"))
    if codec == "gzip":
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0))
    if codec == "bz2":
        return cast(BinaryIO, bz2.BZ2File(file, "wb"))
    return cast(BinaryIO, pa.CompressedOutputStream(pa.PythonFile(_Kept(file), mode="w"), codec))


class _Kept(io.RawIOBase):
    """A file that somebody else closes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(bytes(data))
