"""Content of Arrow IPC files, by their footer, and of IPC streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, TypeAlias

import pyarrow as pa
from pyarrow import ipc

from penstock.core.errors import DecodeError
from penstock.sdk.columns.conform import error_text
from penstock.sdk.encoding.arrow_files import UNREADABLE, Unreadable

_MAGIC = b"ARROW1"
_ALIGNMENT = 8
_CHUNK = 1 << 20
Part: TypeAlias = pa.RecordBatch | Unreadable


def read_schema(file: BinaryIO) -> pa.Schema:
    """Returns the schema of a file or stream. Raises errors of PyArrow for a damaged one."""
    reader = _open_file(file, [])
    return (_open_stream(file, []) if reader is None else reader).schema


def read_parts(file: BinaryIO, columns: Sequence[int]) -> Iterator[Part]:
    """Yields the rows of the columns with these indexes in order.

    Without indexes some columns are decoded. Raises errors of PyArrow for a damaged stream, and for
    a file without its footer, after its last batch.
    """
    reader = _open_file(file, columns or [0])
    if reader is None:
        yield from _open_stream(file, columns or [0])
        if _is_file(file):
            raise DecodeError("the end of the file is damaged", code="not-arrow")
        return
    for index in range(reader.num_record_batches):
        try:
            yield reader.get_batch(index)
        except UNREADABLE as error:
            yield Unreadable(_count_rows(file, index), _damaged(index, error))


def _damaged(index: int, error: Exception) -> DecodeError:
    return DecodeError(
        f"batch {index + 1} of the file is damaged: {error_text(error)}", code="corrupt-file"
    )


def _count_rows(file: BinaryIO, index: int) -> int:
    """Returns the number of rows of a damaged batch; 1 if no column can be decoded."""
    for column in range(len(read_schema(file))):
        try:
            reader = _open_file(file, [column])
            return 1 if reader is None else int(reader.get_batch(index).num_rows)
        except UNREADABLE:
            continue
    return 1


def _is_file(file: BinaryIO) -> bool:
    file.seek(0)
    return file.read(len(_MAGIC)) == _MAGIC


def _open_file(file: BinaryIO, columns: Sequence[int]) -> ipc.RecordBatchFileReader | None:
    """Opens a file by its footer; None for a stream, and for a file with a damaged footer."""
    if not _is_file(file):
        return None
    options = ipc.IpcReadOptions(included_fields=list(columns))
    try:
        return ipc.open_file(pa.PythonFile(_Chunked(file), mode="r"), options=options)
    except UNREADABLE:
        return None


def _open_stream(file: BinaryIO, columns: Sequence[int]) -> ipc.RecordBatchStreamReader:
    """Opens a stream, or the stream that is between the start and the footer of a file."""
    start = 0
    if _is_file(file):
        start = file.seek(_ALIGNMENT)
        while file.read(_ALIGNMENT) == bytes(_ALIGNMENT):
            start += _ALIGNMENT
    file.seek(start)
    options = ipc.IpcReadOptions(included_fields=list(columns))
    return ipc.open_stream(pa.PythonFile(_Chunked(file), mode="r"), options=options)


class _Chunked:
    """A file that is read in chunks, because a corrupt length must not allocate memory."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data = bytearray()
        while len(data) < size and (chunk := self._file.read(min(size - len(data), _CHUNK))):
            data += chunk
        return bytes(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        pass
