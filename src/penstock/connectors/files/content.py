"""The content of a file by offsets, also of a compressed file."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

from penstock.connectors.files.compression import codec_of
from penstock.connectors.files.decompression import DecompressedStream
from penstock.connectors.files.storage import Storage
from penstock.core.errors import DecodeError

SKIP_BYTES = 1 << 20


def open_content(storage: Storage, path: str, compression: str = "auto") -> BinaryIO:
    """Opens the decompressed content of a file. Seeking is possible."""
    codec = codec_of(path, compression)
    if codec is None:
        return storage.open(path)
    return cast(BinaryIO, DecompressedContent(storage, path, codec))


class DecompressedContent(io.RawIOBase):
    """The content of a compressed file by offsets. Seeking backward starts again.

    Raises DecodeError for a corrupt or incomplete file.
    """

    def __init__(self, storage: Storage, path: str, codec: str) -> None:
        self._storage, self._path, self._codec = storage, path, codec
        self._position = 0
        self._stream = self._open()

    def _open(self) -> DecompressedStream:
        file = self._storage.open(self._path, seekable=False)
        return DecompressedStream(file, self._codec, lines=False)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)
        self._position += count
        if not count and self._stream.failure is not None:
            failure = self._stream.failure
            raise DecodeError(f"cannot decompress {self._path}: {failure}") from failure
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence != 0:
            raise io.UnsupportedOperation("expected an absolute offset")
        if offset < self._position:
            self._stream.close()
            self._stream, self._position = self._open(), 0
        while self._position < offset and self.read(min(SKIP_BYTES, offset - self._position)):
            pass
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
