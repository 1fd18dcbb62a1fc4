"""An opened range of a file."""

from __future__ import annotations

import io
import tempfile
from typing import Any, BinaryIO, cast

from penstock.connectors.files.compression import FileWindow, codec_of
from penstock.connectors.files.content import open_content
from penstock.connectors.files.decompression import DecompressedStream
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.signature import SIGNATURE_BYTES, check_uncompressed
from penstock.connectors.files.storage import Storage
from penstock.sdk import FileFormat

BUFFER_BYTES = 1 << 20
Failures = tuple[OSError | None, Exception | None]


class OpenedFile:
    """The content of a file range: decompressed, and seekable if required by the format."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        range_: FileRange,
        format_: FileFormat[Any],
        compression: str,
    ) -> None:
        self.decompressed: DecompressedStream | None = None
        self._starts_with_lines = range_.start == 0 and format_.position == "line"
        codec = codec_of(path, compression)
        if codec is not None and range_.stop is not None:
            content = open_content(storage, path, codec)
            self.window = FileWindow(content, range_.start, range_.stop)
            self.stream = cast(BinaryIO, io.BufferedReader(self.window, BUFFER_BYTES))
            return
        seekable = range_.start > 0 or (format_.needs_seek and codec is None)
        self.window = FileWindow(storage.open(path, seekable=seekable), range_.start, range_.stop)
        self.stream = cast(BinaryIO, io.BufferedReader(self.window, BUFFER_BYTES))
        if codec is not None:
            lines = format_.position == "line"
            self.decompressed = DecompressedStream(self.stream, codec, lines)
            self.stream = cast(BinaryIO, io.BufferedReader(self.decompressed, BUFFER_BYTES))
            if format_.needs_seek:
                self.stream = self._to_temporary_file(self.stream)

    @staticmethod
    def _to_temporary_file(stream: BinaryIO) -> BinaryIO:
        file = tempfile.TemporaryFile()  # noqa: SIM115
        with stream:
            while chunk := stream.read(BUFFER_BYTES):
                file.write(chunk)
        file.seek(0)
        return cast(BinaryIO, file)

    def copy_to_disk(self) -> None:
        """Copies the content to a temporary file, which a fork of this process can read."""
        self.stream = self._to_temporary_file(self.stream)

    def check_kind(self) -> None:
        """Raises DecodeError for a file of lines with compressed content that is not read as such.

        `failures` has the error of content that is not compressed as expected.
        """
        if self._starts_with_lines:
            start = cast(io.BufferedReader, self.stream).peek(SIGNATURE_BYTES)
            if self.decompressed is None:
                check_uncompressed(start)

    @property
    def failures(self) -> Failures:
        """The error of a failed read, and the error of corrupt compressed content."""
        corrupt = None if self.decompressed is None else self.decompressed.failure
        return self.window.failure, corrupt

    @failures.setter
    def failures(self, failures: Failures) -> None:
        self.window.failure = failures[0]
        if self.decompressed is not None:
            self.decompressed.failure = failures[1]

    def checked(self) -> BinaryIO:
        """Returns a stream that raises the error of corrupt content where the content ends."""
        return cast(BinaryIO, _CheckedEnd(self))

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


class _CheckedEnd:
    def __init__(self, file: OpenedFile) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        data = self._file.stream.read(size)
        failure = self._file.failures[1]
        if not data and failure is not None:
            raise failure
        return data
