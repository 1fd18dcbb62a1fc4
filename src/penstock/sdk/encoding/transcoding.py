"""Byte streams in other encodings, read as UTF-8."""

from __future__ import annotations

import codecs
from typing import Annotated, BinaryIO, cast

import pyarrow as pa
from pydantic import AfterValidator

AUTO = "auto"
BYTE_ENCODINGS = (AUTO, "utf-8", "ascii", "iso8859-1")
"""Encodings whose line ends are single bytes; with `auto` unless a file has a byte order mark."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by byte order mark. The mark of UTF-32 starts with a mark of UTF-16."""
_MARK_SIZE = 4


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Replaces undecodable bytes by surrogates for `surrogateescape`, as invalid UTF-8."""
    assert isinstance(error, UnicodeDecodeError)
    escaped = (0xDC00 + max(byte, 0x80) for byte in error.object[error.start : error.end])
    return "".join(map(chr, escaped)), error.end


ESCAPE = "penstock-escape"
"""The error handler `surrogateescape` for all codecs: UTF-16 has undecodable ASCII bytes."""
codecs.register_error(ESCAPE, _escape)


def _canonical(name: str) -> str:
    if name == AUTO:
        return name
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError("expected auto, or an encoding such as utf-8, latin-1 or utf-16") from None


Encoding = Annotated[str, AfterValidator(_canonical)]
"""The option of an encoding: `auto`, or the name of a codec."""


def payloads_as_utf8(payloads: pa.BinaryArray, encoding: str) -> pa.BinaryArray:
    """Returns payloads as UTF-8, which they are with `auto`. Undecodable bytes stay invalid."""
    if encoding in (AUTO, "utf-8"):
        return payloads
    return pa.array([_payload(text, encoding) for text in payloads.to_pylist()], pa.binary())


def _payload(payload: bytes | None, encoding: str) -> bytes | None:
    if payload is None:
        return None
    return payload.decode(encoding, errors=ESCAPE).encode(errors="surrogateescape")


def as_utf8(file: BinaryIO, encoding: str) -> BinaryIO:
    """Returns a stream with the text of a file as UTF-8.

    With `auto` a byte order mark determines the encoding; without one it is UTF-8.
    """
    if encoding == AUTO:
        start = b""
        while len(start) < _MARK_SIZE and (chunk := file.read(_MARK_SIZE - len(start))):
            start += chunk
        encoding = encoding_of(start)
        file = cast(BinaryIO, Rejoined(start, file))
    return file if encoding == "utf-8" else cast(BinaryIO, Utf8Reader(file, encoding))


def encoding_of(start: bytes) -> str:
    """Returns the encoding of a text by its byte order mark; UTF-8 without one."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8")


class Rejoined:
    """A byte stream of which the first bytes have already been read."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file

    def read(self, size: int) -> bytes:
        if not self._start:
            return self._file.read(size)
        chunk, self._start = self._start[:size], self._start[size:]
        return chunk + self._file.read(size - len(chunk)) if size > len(chunk) else chunk


class Utf8Reader:
    """A byte stream in another encoding, read as UTF-8. Undecodable bytes stay invalid."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.file = file
        self.decoder = codecs.getincrementaldecoder(encoding)(errors=ESCAPE)

    def read(self, size: int) -> bytes:
        """Returns at least one byte; no byte at the end of the file."""
        while chunk := self.file.read(size):
            text = self.decoder.decode(chunk)
            if text:
                return text.encode(errors="surrogateescape")
        return self.decoder.decode(b"", final=True).encode(errors="surrogateescape")
