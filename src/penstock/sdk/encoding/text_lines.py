"""Formats of text whose records are lines, in any encoding."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Self, TypeVar

import pyarrow as pa
from pydantic import model_validator

from penstock.sdk.config import Config
from penstock.sdk.encoding.lines import Framing, Lines, read_lines, split_payloads
from penstock.sdk.encoding.transcoding import (
    AUTO,
    BYTE_ENCODINGS,
    Encoding,
    as_utf8,
    encoding_of,
)
from penstock.sdk.format import FileFormat
from penstock.sdk.record import Read, Records


class LinesConfig(Config):
    """Options of formats whose records are lines."""

    framing: Framing = "none"
    """The content of a payload: one record, or with `lines` one on each line that is not blank."""
    encoding: Encoding = AUTO
    """The encoding for reading, such as `latin-1` or `utf-16-le`. With `auto` the byte order mark
    of a file determines UTF-16 or UTF-32; other files and payloads are UTF-8. Files are written as
    UTF-8."""

    @model_validator(mode="after")
    def _check_encoding(self) -> Self:
        if self.framing == "lines" and self.encoding not in BYTE_ENCODINGS:
            raise ValueError("framing: lines requires the encoding auto, utf-8, ascii or latin-1")
        return self


L = TypeVar("L", bound=LinesConfig)


class LinesFormat(FileFormat[L]):
    """A format whose records are the lines of a file. Rejected records of files are UTF-8."""

    position: ClassVar[str] = "line"
    concatenable: ClassVar[bool] = True
    lines: ClassVar[bool] = True

    def records(self, payloads: pa.BinaryArray) -> Records:
        return (
            split_payloads(payloads) if self.config.framing == "lines" else Records(payloads, None)
        )

    def is_divisible(self, start: bytes) -> bool:
        encoding = self.config.encoding
        return (encoding_of(start) if encoding == AUTO else encoding) in BYTE_ENCODINGS

    def without_start(self) -> FileFormat[L]:
        return self._with_encoding("utf-8") if self.config.encoding == AUTO else self

    def read_record(
        self, payload: bytes, header: bytes, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        """Yields the row of a rejected record, which is UTF-8, whatever the encoding."""
        return self._with_encoding("utf-8").read_file(io.BytesIO(payload), schema, origin, read)

    def _with_encoding(self, encoding: str) -> FileFormat[L]:
        config = self.config.model_copy(update={"encoding": encoding})
        return type(self)(config, self.context)

    def _lines(self, file: BinaryIO, blank: bool = False) -> Iterator[Lines]:
        return read_lines(as_utf8(file, self.config.encoding), blank=blank)
