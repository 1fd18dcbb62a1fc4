"""Text: one string; a file is lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar

import pyarrow as pa

from penstock.core.errors import EncodeError
from penstock.sdk.config import Config
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.kit.arrays import values_of
from penstock.sdk.kit.lines import Framing, LineWriter, read_lines, records_of, too_long_error
from penstock.sdk.kit.whole import chosen, decode_values, encode_values, value_column
from penstock.sdk.record import Decoded, Encoded, Failure, Read, Records


class TextConfig(Config):
    """Options of `text`."""

    column: str | None = None
    """The column that a sink writes, if there are several."""
    framing: Framing = "none"
    """What a payload holds: one record, or with `lines` one on each line that is not blank."""
    keep_blank: bool = False
    """Whether the empty lines of a file are records."""


class Text(FileFormat[TextConfig]):
    """Plain text: one STRING column, `value` if nothing else is declared.

    ```yaml
    format: text
    ```

    The text must be UTF-8. Lines of a file (`.txt`) end with `\\n` or `\\r\\n`; empty ones are
    skipped unless `keep_blank`; one of more than 64 MB is an error, and so is writing a text of
    several lines into a file. A payload may have several lines, and is one record unless
    `framing: lines`. A record without a value (a deletion, a tombstone) is a null, or an error
    where the column is NOT NULL; writing a null is an error.
    """

    extension: ClassVar[str] = ".txt"
    position: ClassVar[str] = "line"
    concatenable: ClassVar[bool] = True
    lines: ClassVar[bool] = True

    def records(self, payloads: pa.BinaryArray) -> Records:
        return records_of(payloads) if self.config.framing == "lines" else Records(payloads, None)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        value_column(schema, "text", (pa.string(),))
        return decode_values(payloads, schema)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        return encode_values(chosen(rows, self.config.column, "text"))

    def infer(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        return pa.schema([("value", pa.string())])

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.infer(pa.array([], pa.binary()))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        for texts, numbers, too_long in read_lines(file, blank=self.config.keep_blank):
            for number, beginning in too_long:
                read.reject(beginning, origin, number, too_long_error())
            found = self.decode(texts, schema)
            for failure in found.failures:
                at = failure[0]
                read.reject(texts[at].as_py(), origin, int(numbers[at]), failure.error)
            places = numbers if found[1] is None else numbers[found[1].to_numpy()]
            if found.rows.num_rows:
                yield found.rows, pa.array(places)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return LineWriter(file, _Lines(self.config, self.context))


class _Lines(Text):
    """Text whose payloads are lines."""

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        encoded = super().encode(rows)
        if not (values_of(encoded.payloads) == 10).any():
            return encoded
        error = EncodeError("the text has several lines", code="several-lines")
        places = range(len(encoded.payloads)) if encoded[1] is None else encoded[1].to_pylist()
        bad = [b"\n" in payload for payload in encoded.payloads.to_pylist()]
        failures = [Failure(at, error) for at, is_bad in zip(places, bad, strict=True) if is_bad]
        good = pa.array([not is_bad for is_bad in bad])
        index = pa.array(list(places), pa.int64()).filter(good)
        return Encoded(encoded.payloads.filter(good), index, [*encoded.failures, *failures])
