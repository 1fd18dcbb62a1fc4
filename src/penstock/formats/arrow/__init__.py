"""Arrow: IPC files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import pyarrow as pa
from pyarrow import ipc

from penstock.core.errors import DecodeError
from penstock.formats.arrow.ipc_content import read_parts, read_schema
from penstock.sdk.columns.conform import error_text, project_schema
from penstock.sdk.columns.names import match_fields
from penstock.sdk.encoding.arrow_files import (
    UNREADABLE,
    Unreadable,
    check_file_columns,
    read_batches,
    spark_compatible,
)
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Encoded, Read


class ArrowConfig(TimeOptions):
    """Options of `arrow`."""

    layout: Literal["stream", "file"] = "file"
    """The format to write: IPC file or IPC stream. Both can be read."""
    compression: Literal["zstd", "lz4", "none"] = "zstd"
    """The compression of buffers."""


class Arrow(FileFormat[ArrowConfig]):
    """Arrow IPC files and streams (`.arrow`; Feather V2 is the same). For files only.

    ```yaml
    format: {type: arrow, compression: lz4}
    ```

    Columns are matched by name, as in the format `parquet`. A missing column is null; a file
    without any declared column is an error, which ends the query. Only required columns are
    decoded. Values are converted as in the format `parquet`.

    A text that is not UTF-8 is an error of its row. The rows of a batch that cannot be decoded are
    one error; other batches of an IPC file are read. In a stream, and in a file without its footer,
    the batches before the defect are read and the remaining content is one error. The position is
    the number of the row.
    """

    messages: ClassVar[bool] = False
    extension: ClassVar[str] = ".arrow"
    needs_seek: ClassVar[bool] = True
    native_decoder: ClassVar[bool] = True

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        parts = _parts(file, schema, origin, read)
        return read_batches(parts, schema, origin, read, self.config.conversion)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, schema, self.config)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return spark_compatible(read_schema(file))
        except UNREADABLE:
            return None


def _parts(
    file: BinaryIO, schema: pa.Schema, origin: str, read: Read
) -> Iterator[pa.RecordBatch | Unreadable]:
    try:
        columns = read_schema(file)
        check_file_columns(columns, schema, origin)
        needed = match_fields(columns, project_schema(schema, read))
        yield from read_parts(file, [columns.names.index(name) for name, _ in needed])
    except UNREADABLE as error:
        raise DecodeError(f"not an Arrow file: {error_text(error)}", code="not-arrow") from error


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, schema: pa.Schema, config: ArrowConfig) -> None:
        compression = None if config.compression == "none" else config.compression
        options = ipc.IpcWriteOptions(compression=compression)
        new_writer = ipc.new_stream if config.layout == "stream" else ipc.new_file
        self.writer = new_writer(pa.PythonFile(file, mode="w"), schema, options=options)

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        self.writer.write_batch(rows)
        return None

    def close(self) -> None:
        self.writer.close()
