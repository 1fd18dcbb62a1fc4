"""Text: strings; lines in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar

import pyarrow as pa

from penstock.core.errors import EncodeError
from penstock.sdk.columns.binary_arrays import concatenated_values
from penstock.sdk.encoding.lines import LineWriter, too_long_error
from penstock.sdk.encoding.single_column import (
    decode_values,
    encode_values,
    select_column,
    value_column,
)
from penstock.sdk.encoding.text_lines import LinesConfig, LinesFormat
from penstock.sdk.encoding.transcoding import payloads_as_utf8
from penstock.sdk.format import FileWriter
from penstock.sdk.record import Decoded, Encoded, Failure, Read


class TextConfig(LinesConfig):
    """Options of `text`."""

    column: str | None = None
    """The column that a sink writes. Required if there are several columns."""
    keep_blank: bool = False
    """Read the empty lines of a file as records."""


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
    """

    extension: ClassVar[str] = ".txt"

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
        for texts, numbers, too_long in self._lines(file, self.config.keep_blank):
            for number, start in too_long:
                read.reject(start, origin, number, too_long_error())
            decoded = self._decode(texts, schema)
            for failure in decoded.failures:
                index = failure[0]
                read.reject(texts[index].as_py(), origin, int(numbers[index]), failure.error)
            positions = numbers if decoded[1] is None else numbers[decoded[1].to_numpy()]
            if decoded.rows.num_rows:
                yield decoded.rows, pa.array(positions)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, _Lines(self.config, self.context))


class _Lines(Text):
    """Text in files: a value that would not be read back as one line is a failure."""

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        encoded = super().encode(rows)
        values = concatenated_values(encoded.payloads)
        if not ((values == 10) | (values == 13)).any():
            return encoded
        error = EncodeError("the text has several lines", code="several-lines")
        row_indexes = range(len(encoded.payloads)) if encoded[1] is None else encoded[1].to_pylist()
        payloads = encoded.payloads.to_pylist()
        breaks = [b"\n" in payload or payload.endswith(b"\r") for payload in payloads]
        failures = [
            Failure(row, error) for row, broken in zip(row_indexes, breaks, strict=True) if broken
        ]
        valid = pa.array([not broken for broken in breaks])
        index = pa.array(list(row_indexes), pa.int64()).filter(valid)
        return Encoded(encoded.payloads.filter(valid), index, [*encoded.failures, *failures])
