"""Arrow: IPC files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import pyarrow as pa
from pyarrow import ipc

from penstock.core.errors import DecodeError
from penstock.sdk.config import Config
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.kit.columns import reason
from penstock.sdk.kit.tables import portable, read_batches
from penstock.sdk.record import Encoded, Read

_MAGIC = b"ARROW1\0\0"


class ArrowConfig(Config):
    """Options of `arrow`."""

    layout: Literal["stream", "file"] = "file"
    """What is written: the IPC file format or the IPC stream format. Both are read."""
    compression: Literal["zstd", "lz4", "none"] = "zstd"
    """How buffers are compressed."""


class Arrow(FileFormat[ArrowConfig]):
    """Arrow IPC files and streams (`.arrow`; Feather V2 is the same). For files only.

    ```yaml
    format: {type: arrow, compression: lz4}
    ```

    Columns go by name; types may differ from those declared where nothing is lost, and a row
    whose value does not fit is an error. The batches before the place where a file is cut off or
    broken are read; the rest is one error. The position is the row's number. Files are read as
    streams, so they need not be seekable.
    """

    messages: ClassVar[bool] = False
    extension: ClassVar[str] = ".arrow"

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        return read_batches(_batches(file), schema, origin, read)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, schema, self.config)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return portable(_open(file).schema)
        except (pa.ArrowException, OSError):
            return None


def _open(file: BinaryIO) -> ipc.RecordBatchStreamReader:
    """A file is a stream between a magic word and a footer."""
    head = b""
    while len(head) < len(_MAGIC) and (more := file.read(len(_MAGIC) - len(head))):
        head += more
    return ipc.open_stream(pa.PythonFile(_Rest(b"" if head == _MAGIC else head, file), mode="r"))


class _Rest:
    """A file from which a beginning has been read."""

    closed = False

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self.head = head
        self.file = file

    def read(self, size: int = -1) -> bytes:
        taken, self.head = self.head[:size], self.head[size:]
        while len(taken) < size and (more := self.file.read(size - len(taken))):
            taken += more
        return taken

    def close(self) -> None:
        pass


def _batches(file: BinaryIO) -> Iterator[pa.RecordBatch]:
    try:
        reader = _open(file)
        for batch in reader:
            batch.validate(full=True)
            yield batch
    except (pa.ArrowException, OSError) as error:
        raise DecodeError(f"not an Arrow file: {reason(error)}", code="not-arrow") from error


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, schema: pa.Schema, config: ArrowConfig) -> None:
        compression = None if config.compression == "none" else config.compression
        options = ipc.IpcWriteOptions(compression=compression)
        make = ipc.new_stream if config.layout == "stream" else ipc.new_file
        self.writer = make(pa.PythonFile(file, mode="w"), schema, options=options)

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        self.writer.write_batch(rows)
        return None

    def close(self) -> None:
        self.writer.close()
