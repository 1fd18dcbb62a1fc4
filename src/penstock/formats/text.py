"""Text: strings; lines in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Self

import pyarrow as pa
from pydantic import field_validator, model_validator

from penstock.core.errors import EncodeError, OptionError
from penstock.sdk.columns.binary_arrays import concatenated_values
from penstock.sdk.encoding.line_records import (
    LineRecords,
    RecordStart,
    last_start,
    read_records,
    separate_record_errors,
)
from penstock.sdk.encoding.lines import LineWriter, too_long_error
from penstock.sdk.encoding.single_column import (
    decode_values,
    encode_values,
    select_column,
    value_column,
)
from penstock.sdk.encoding.text_lines import LinesConfig, LinesFormat
from penstock.sdk.encoding.transcoding import as_utf8, payloads_as_utf8
from penstock.sdk.format import FileWriter
from penstock.sdk.record import Decoded, Encoded, Failure, Read


class TextConfig(LinesConfig):
    """Options of `text`."""

    column: str | None = None
    """The column that a sink writes. Required if there are several columns."""
    keep_blank: bool = False
    """Read the empty lines of a file as records."""
    record_start: str | None = None
    """A regular expression (RE2) that is searched in each line of a file. A line with a match is
    the first one of a record, as with `'^\\d{4}-'` in a log with stack traces; other lines continue
    the record before them. By default each line is a record."""

    @field_validator("record_start")
    @classmethod
    def _check_record_start(cls, record_start: str | None) -> str | None:
        if record_start is not None:
            RecordStart(record_start)
        return record_start

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.record_start is not None and self.keep_blank:
            raise ValueError(
                "record_start excludes keep_blank: the empty lines of a record are kept"
            )
        return self


class Text(LinesFormat[TextConfig]):
    """Plain text: one STRING column, by default `value`.

    ```yaml
    format: text
    ```

    The text is UTF-8 unless a file has the byte order mark of UTF-16 or UTF-32, or `encoding` is
    set. Lines of a file (`.txt`) end with `\\n` or `\\r\\n`; a `\\r` elsewhere is part of the line.
    Empty lines are skipped unless `keep_blank` is set. A line of more than 64 MB is an error, as is
    writing a text with `\\n`, or with `\\r` at its end, to a file. A payload may have several
    lines; it is one record unless `framing: lines` is set. A record without a value (a deletion, a
    tombstone) is null, or an error if the column is NOT NULL. Writing a null is an error.

    With `record_start` a record of a file has several lines, and its position is the number of the
    first one. Its text has all lines, also empty ones, joined by `\\n` without the last line end.
    Lines before the first start are a record, unless they are all empty. Records do not span files.
    A record of more than 64 MB is an error, up to the next start. A sink writes texts that would be
    read back as one record with the same option: the first line matches, and no other one.
    """

    extension: ClassVar[str] = ".txt"
    _inside = False
    """Whether files are read from within a record, whose remaining lines are skipped."""

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return self._decode(payloads_as_utf8(payloads, self.config.encoding), schema)

    def check_columns(self, columns: pa.Schema) -> None:
        value_column(columns, "text", (pa.string(),))

    def _decode(self, texts: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        self.check_columns(schema)
        return decode_values(texts, schema)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        return encode_values(select_column(rows, self.config.column, "text"))

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        return pa.schema([("value", pa.string())])

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.infer_schema(pa.array([], pa.binary()))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        for texts, numbers, bad in self._records(file):
            for number, start, error in bad:
                read.reject(start, origin, number, error)
            decoded = self._decode(texts, schema)
            for failure in decoded.failures:
                index = failure[0]
                read.reject(texts[index].as_py(), origin, int(numbers[index]), failure.error)
            positions = numbers if decoded[1] is None else numbers[decoded[1].to_numpy()]
            if decoded.rows.num_rows:
                yield decoded.rows, pa.array(positions)

    def _records(self, file: BinaryIO) -> Iterator[LineRecords]:
        if self._start is not None:
            text = as_utf8(file, self.config.encoding)
            yield from read_records(text, self._start, inside=self._inside)
            return
        for texts, numbers, too_long in self._lines(file, self.config.keep_blank):
            bad = [(number, line, too_long_error()) for number, line in too_long]
            yield LineRecords(texts, numbers, bad)

    @property
    def _start(self) -> RecordStart | None:
        pattern = self.config.record_start
        return None if pattern is None else RecordStart(pattern)

    @property
    def spans_lines(self) -> bool:
        return self.config.record_start is not None

    def last_record_start(self, lines: bytes) -> int | None:
        if self._start is None:
            return super().last_record_start(lines)
        return last_start(lines, self._start, self.config.encoding)

    def inside_record(self) -> Text:
        text = Text(self.config, self.context)
        text._inside = True
        return text

    def read_record(
        self, payload: bytes, header: bytes, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        if self._start is None:
            yield from super().read_record(payload, header, schema, origin, read)
            return
        decoded = self._decode(pa.array([payload], pa.binary()), schema)
        for failure in decoded.failures:
            read.reject(payload, origin, 1, failure.error)
        if decoded.rows.num_rows:
            yield decoded.rows, pa.array([1], pa.int64())

    def check_messages(self) -> None:
        if self.config.record_start is not None:
            raise OptionError.of(
                "record_start",
                message="record_start is for files: a message is one record with all its lines",
                code="unused-option",
                hint="Remove record_start, or set framing: lines if each line of a message is a "
                "record.",
            )

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, _Lines(self.config, self.context))


class _Lines(Text):
    """Text in files: a value that would not be read back as one record is a failure."""

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        encoded = super().encode(rows)
        if self._start is not None:
            errors = separate_record_errors(encoded.payloads, self._start)
        else:
            errors = _several_lines_errors(encoded.payloads)
        if not errors:
            return encoded
        row_indexes = range(len(encoded.payloads)) if encoded[1] is None else encoded[1].to_pylist()
        failures = [Failure(row_indexes[at], error) for at, error in errors.items()]
        valid = pa.array([at not in errors for at in range(len(encoded.payloads))])
        index = pa.array(list(row_indexes), pa.int64()).filter(valid)
        return Encoded(encoded.payloads.filter(valid), index, [*encoded.failures, *failures])


def _several_lines_errors(texts: pa.BinaryArray) -> dict[int, EncodeError]:
    """Returns the errors of texts, by their index, that would not be read back as one line."""
    values = concatenated_values(texts)
    if not ((values == 10) | (values == 13)).any():
        return {}
    error = EncodeError(
        "the text has several lines",
        code="several-lines",
        hint="Set record_start to write records of several lines, or replace the line ends.",
    )
    return {
        at: error
        for at, text in enumerate(texts.to_pylist())
        if b"\n" in text or text.endswith(b"\r")
    }
