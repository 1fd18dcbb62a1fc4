"""Parquet: columnar files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import pyarrow as pa
from pyarrow import parquet
from pydantic import Field

from penstock.core.errors import DecodeError
from penstock.core.units import ByteSize
from penstock.formats.parquet.content import Content
from penstock.formats.parquet.row_groups import read_row_groups
from penstock.sdk.columns.conform import error_text, project_schema
from penstock.sdk.columns.names import match_fields
from penstock.sdk.encoding.arrow_files import (
    UNREADABLE,
    Unreadable,
    check_file_columns,
    read_batches,
    spark_compatible,
    unsupported_type,
)
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Encoded, Read


class ParquetConfig(TimeOptions):
    """Options of `parquet`."""

    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd"
    """The compression of column chunks."""
    row_group_rows: int = 1_000_000
    """The maximum number of rows in a row group."""
    row_group_size: ByteSize = Field(default=64 << 20, ge=1)
    """The size of the rows in memory at which a row group ends. A writer holds one row group."""


class Parquet(FileFormat[ParquetConfig]):
    """Parquet files (`.parquet`). For files only, not for messages.

    ```yaml
    format: {type: parquet, compression: snappy}
    ```

    Columns are matched by name; upper and lower case are equal, unless the file has the equal name.
    Several names for a column are an error, which ends the query. A missing column is null; a
    file without any declared column is an error, which ends the query. Only required columns
    are read, row group by row group. A type may differ from the declared type if the value is
    converted without loss: BIGINT to INT in range, DOUBLE to DECIMAL with all digits, TIMESTAMP
    to DATE at midnight, STRING as in the format `json`. BINARY is not converted to numbers. Another
    value is an error of its row, which names both types. Numbers are timestamps only with the
    option `timestamps`. UUID is converted to STRING or BINARY. INT96 may have any year.

    A text that is not UTF-8 is an error of its row. The rows of a row group that cannot be decoded
    are one error, as are those of a row group whose columns have different numbers of rows; other
    row groups are read. A file in another format and a truncated file are one error with position
    0. The position is the number of the row.
    """

    messages: ClassVar[bool] = False
    extension: ClassVar[str] = ".parquet"
    needs_seek: ClassVar[bool] = True
    native_decoder: ClassVar[bool] = True

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        batches = self._batches(file, schema, origin, read)
        return read_batches(batches, schema, origin, read, self.config.conversion)

    def _batches(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        try:
            content = Content(file, truncate=self.config.nanoseconds == "truncate")
            check_file_columns(content.schema, schema, origin)
            needed = match_fields(content.schema, project_schema(schema, read))
            yield from read_row_groups(content, [name for name, _ in needed])
        except pa.ArrowNotImplementedError as error:
            found = unsupported_type(error)
            raise DecodeError(found.message, code=found.code, hint=found.hint) from error
        except UNREADABLE as error:
            raise DecodeError(
                f"not a Parquet file: {error_text(error)}", code="not-parquet"
            ) from error

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, schema, self.config)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return spark_compatible(parquet.read_schema(file))
        except pa.ArrowNotImplementedError as error:
            raise unsupported_type(error) from error
        except UNREADABLE:
            return None


class _Writer(FileWriter):
    """A writer of row groups of the configured size."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, config: ParquetConfig) -> None:
        self.config = config
        self.schema = schema
        self.writer = parquet.ParquetWriter(
            file, schema, compression=config.compression, store_decimal_as_integer=True
        )
        self.batches: list[pa.RecordBatch] = []
        self.rows = self.size = 0

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        self.batches.append(rows)
        self.rows += rows.num_rows
        self.size += rows.nbytes
        if self.rows >= self.config.row_group_rows or self.size >= self.config.row_group_size:
            self._flush()
        return None

    def _flush(self) -> None:
        if self.batches:
            table = pa.Table.from_batches(self.batches, self.schema)
            self.writer.write_table(table, row_group_size=self.config.row_group_rows)
        self.batches, self.rows, self.size = [], 0, 0

    def close(self) -> None:
        self._flush()
        self.writer.close()

    @property
    def metadata(self) -> parquet.FileMetaData:
        """The metadata of the closed file."""
        return self.writer.writer.metadata
