"""Arrow: IPC files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import pyarrow as pa
from pyarrow import ipc

from penstock.core.errors import DecodeError
from penstock.sdk.columns.conform import error_text
from penstock.sdk.encoding.arrow_files import (
    UNREADABLE,
    check_file_columns,
    read_batches,
    spark_compatible,
)
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Encoded, Read

_MAGIC = b"ARROW1\0\0"
_CHUNK = 1 << 20


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
    without any declared column is an error, which ends the query. Values are converted as in
    the format `parquet`. In a truncated or corrupt file the batches before the defect are read
    and the remaining content is one error. The position is the number of the row. Files are
    read as streams and need not be seekable.
    """

    messages: ClassVar[bool] = False
    extension: ClassVar[str] = ".arrow"
    native_decoder: ClassVar[bool] = True

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        batches = _batches(file, schema, origin)
        return read_batches(batches, schema, origin, read, self.config.conversion)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, schema, self.config)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return spark_compatible(_open(file).schema)
        except UNREADABLE:
            return None


def _open(file: BinaryIO) -> ipc.RecordBatchStreamReader:
    """Opens a stream, or the stream in a file between its magic bytes and footer."""
    head = b""
    while len(head) < len(_MAGIC) and (chunk := file.read(len(_MAGIC) - len(head))):
        head += chunk
    stream = _PrefixedFile(b"" if head == _MAGIC else head, file)
    return ipc.open_stream(pa.PythonFile(stream, mode="r"))


class _PrefixedFile:
    """A file after its first bytes `head` were read.

    Reads in chunks, because a corrupt length must not allocate memory.
    """

    closed = False

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self.head = head
        self.file = file

    def read(self, size: int = -1) -> bytes:
        data, self.head = bytearray(self.head[:size]), self.head[size:]
        while len(data) < size and (chunk := self.file.read(min(size - len(data), _CHUNK))):
            data += chunk
        return bytes(data)

    def close(self) -> None:
        pass


def _batches(file: BinaryIO, schema: pa.Schema, origin: str) -> Iterator[pa.RecordBatch]:
    try:
        reader = _open(file)
        check_file_columns(reader.schema, schema, origin)
        for batch in reader:
            batch.validate(full=True)
            yield batch
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
