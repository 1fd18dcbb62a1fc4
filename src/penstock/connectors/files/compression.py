"""Compression codecs, and streams that compress."""

from __future__ import annotations

import bz2
import io
import lzma
from typing import Any, BinaryIO, cast

import pyarrow as pa

EXTENSIONS = {
    ".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz",
    ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".br": "brotli",
}  # fmt: skip
SUFFIX = {"gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "lz4": ".lz4", "brotli": ".br"}
CHUNK_BYTES = 1 << 16


def codec_of(path: str, compression: str) -> str | None:
    """Returns the codec of a file: as configured, or by the file extension."""
    if compression == "auto":
        return next(
            (codec for extension, codec in EXTENSIONS.items() if path.lower().endswith(extension)),
            None,
        )
    return None if compression == "none" else compression


def strip_compression_extension(name: str) -> str:
    """Returns a file name without the extension of its compression."""
    for extension in EXTENSIONS:
        if name.lower().endswith(extension):
            return name[: -len(extension)]
    return name


class FileWindow(io.RawIOBase):
    """The bytes `start` to `stop` of a file. `failure` is the OSError of a failed read."""

    def __init__(self, file: BinaryIO, start: int = 0, stop: int | None = None) -> None:
        self._file = file
        self._start = start
        self._stop = stop
        self.failure: OSError | None = None
        if start:
            file.seek(start)
        self._position = start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if self._stop is not None:
            view = view[: max(0, self._stop - self._position)]
        try:
            count = cast(io.RawIOBase, self._file).readinto(view) or 0
        except OSError as error:
            self.failure = error
            raise
        self._position += count
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (self._start, self._position, 0)[whence]
        if whence == 2:
            base = self._stop if self._stop is not None else self._file.seek(0, 2)
        self._position = self._file.seek(base + offset)
        return self._position - self._start

    def tell(self) -> int:
        return self._position - self._start

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def compressed_stream(file: BinaryIO, codec: str | None) -> BinaryIO:
    """Returns a stream that compresses into `file`. Closing it leaves `file` open."""
    if codec is None:
        return file
    if codec == "xz":
        return cast(BinaryIO, lzma.LZMAFile(file, "wb"))
    if codec == "gzip":
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0))
    if codec == "bz2":
        return cast(BinaryIO, bz2.BZ2File(file, "wb"))
    return cast(
        BinaryIO, pa.CompressedOutputStream(pa.PythonFile(_UnclosedFile(file), mode="w"), codec)
    )


class _UnclosedFile(io.RawIOBase):
    """A file that stays open when its wrapper is closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(bytes(data))
