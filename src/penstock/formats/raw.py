"""Raw: payloads as the values of one column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar

import pyarrow as pa

from penstock.sdk.config import Config
from penstock.sdk.encoding.single_column import (
    decode_values,
    encode_values,
    select_column,
    value_column,
)
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Decoded, Encoded, Read

_TYPES = (pa.binary(), pa.string())


class RawConfig(Config):
    """Options of `raw`."""

    column: str | None = None
    """The column that a sink writes. Required if there are several columns."""


class Raw(FileFormat[RawConfig]):
    """Payloads without conversion: one column, BINARY or STRING as declared (default `value
    BINARY`).

    ```yaml
    format: {type: raw, column: body}
    ```

    A STRING must be UTF-8. An empty payload is an empty value. A record without a value (a
    deletion, a tombstone) is null, or an error if the column is NOT NULL. Writing a null is an
    error. A file is one record (`.bin`). A sink writes values one after the other without
    separators.
    """

    extension: ClassVar[str] = ".bin"
    position: ClassVar[str] = "file"

    def check_columns(self, columns: pa.Schema) -> None:
        value_column(columns, "raw", _TYPES)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        self.check_columns(schema)
        return decode_values(payloads, schema)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        return encode_values(select_column(rows, self.config.column, "raw"))

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        return pa.schema([("value", pa.binary())])

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.infer_schema(pa.array([], pa.binary()))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        content = file.read()
        decoded = self.decode(pa.array([content], pa.binary()), schema)
        for failure in decoded.failures:
            read.reject(content, origin, 1, failure.error)
        if decoded.rows.num_rows:
            yield decoded.rows, pa.array([1], pa.int64())

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, self)


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, format_: Raw) -> None:
        self.file = file
        self.format = format_

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.format.encode(rows)
        for payload in encoded.payloads:
            self.file.write(payload.as_buffer())
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass
