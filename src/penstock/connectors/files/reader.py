"""Reading of one file as rows."""

from __future__ import annotations

import io
import lzma
import re
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.compression import FileWindow, codec_of
from penstock.connectors.files.content import open_content
from penstock.connectors.files.decompression import DecompressedStream
from penstock.connectors.files.log import FileRange
from penstock.connectors.files.signature import NOT_COMPRESSED
from penstock.connectors.files.storage import Storage
from penstock.core.errors import DecodeError, PlanError, RecordError
from penstock.sdk import FileFormat, Read
from penstock.sdk.columns.rows import column

METADATA = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("name", pa.string()),
        pa.field("modified", pa.timestamp("us", tz="UTC")),
        pa.field("size", pa.int64()),
        pa.field("position", pa.int64()),
    ]
)
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
BUFFER_BYTES = 1 << 20
_HIVE = re.compile(r"([^/=]+)=([^/]*)\Z")
_CORRUPT = (
    RecordError, pa.ArrowException, OSError, EOFError, ValueError, LookupError, MemoryError,
    struct.error, zlib.error, lzma.LZMAError,
)  # fmt: skip


class OpenedFile:
    """The content of a file range: decompressed, and seekable if required by the format."""

    def __init__(self, storage: Storage, path: str, range_: FileRange, reader: FileReader) -> None:
        self.decompressed: DecompressedStream | None = None
        codec = codec_of(path, reader.compression)
        if codec is not None and range_.stop is not None:
            content = open_content(storage, path, codec)
            self.window = FileWindow(content, range_.start, range_.stop)
            self.stream = cast(BinaryIO, io.BufferedReader(self.window, BUFFER_BYTES))
            return
        seekable = range_.start > 0 or (reader.format.needs_seek and codec is None)
        self.window = FileWindow(storage.open(path, seekable=seekable), range_.start, range_.stop)
        self.stream = cast(BinaryIO, io.BufferedReader(self.window, BUFFER_BYTES))
        if codec is not None:
            lines = reader.format.position == "line"
            self.decompressed = DecompressedStream(self.stream, codec, lines)
            self.stream = cast(BinaryIO, io.BufferedReader(self.decompressed, BUFFER_BYTES))
            if reader.format.needs_seek:
                self.stream = self._to_temporary_file(self.stream)

    @staticmethod
    def _to_temporary_file(stream: BinaryIO) -> BinaryIO:
        file = tempfile.TemporaryFile()  # noqa: SIM115
        with stream:
            while chunk := stream.read(BUFFER_BYTES):
                file.write(chunk)
        file.seek(0)
        return cast(BinaryIO, file)

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


class FileReader:
    """Reads files as rows of the given columns."""

    def __init__(
        self, file_format: FileFormat[Any], compression: str, columns: pa.Schema | None
    ) -> None:
        self.format = file_format
        self.compression = compression
        self.columns = columns

    def rows(
        self, storage: Storage, path: str, range_: FileRange, read: Read
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a file range. Rejects the unreadable rest of a file as one record."""
        assert self.columns is not None
        hive = self._hive_columns(range_.path)
        schema = pa.schema([field for field in self.columns if field.name not in hive])
        file_read = Read(read.columns, read.conjuncts, read.metadata)
        last_position = 0
        failure: Exception | None = None
        with storage.convert_errors("open", range_.display_path):
            file = OpenedFile(storage, path, range_, self)
        with file:
            try:
                for rows, positions in self.format.read_file(
                    file.stream, schema, range_.origin, file_read
                ):
                    last_position = max(
                        last_position,
                        _max_position(positions),
                        _forward_rejected(file_read, read, range_.line),
                    )
                    if rows.num_rows:
                        yield self._add_columns(rows, positions, range_, hive, read)
            except _CORRUPT as error:
                failure = error
            if file.window.failure is not None:
                raise storage.convert_error(
                    file.window.failure, "read", range_.display_path
                ) from failure
            if file.decompressed is not None and file.decompressed.failure is not None:
                failure = file.decompressed.failure
        rejected_position = _forward_rejected(file_read, read, range_.line)
        last_position = max(last_position, rejected_position)
        if failure is not None:
            read.reject(
                None,
                range_.origin,
                range_.line + last_position + 1,
                corrupt_file_error(failure, range_),
            )

    def record(
        self, storage: Storage, path: str, payload: bytes, header: bytes | None
    ) -> pa.RecordBatch:
        """Returns the rows of a single record of a file. Raises RecordError.

        Reads a missing header from the file.
        """
        assert self.columns is not None
        hive = self._hive_columns(path)
        schema = pa.schema([field for field in self.columns if field.name not in hive])
        range_, read = FileRange(path, 0, 0), Read()
        if header is None:
            header = self._header(storage, path, range_) if self.format.needs_header else b""
        batches = list(self.format.read_record(payload, header, schema, path, read))
        for bad in read.bad:
            raise bad.error
        complete = [
            self._add_columns(rows, positions, range_, hive, read) for rows, positions in batches
        ]
        return pa.concat_batches([pa.RecordBatch.from_pylist([], self.columns), *complete])

    def _hive_columns(self, path: str) -> dict[str, str | None]:
        """Returns the values of the columns that a path contains."""
        assert self.columns is not None
        names = self.columns.names
        return {name: value for name, value in hive_values(path).items() if name in names}

    def _header(self, storage: Storage, path: str, range_: FileRange) -> bytes:
        try:
            with OpenedFile(storage, path, range_, self) as file:
                return self.format.header(file.stream)
        except OSError as error:
            raise DecodeError(
                f"cannot read the header of {path}: the file does not exist", code="file-missing"
            ) from error

    def infer_schema(self, storage: Storage, path: str, range_: FileRange) -> pa.Schema | None:
        """Returns the columns of a file, including those of its path; None without any.

        Raises DecodeError for a file that is not compressed, or compressed with another codec.
        """
        with (
            storage.convert_errors("read", range_.display_path),
            OpenedFile(storage, path, range_, self) as file,
        ):
            try:
                schema = self.format.infer_file(file.stream)
            except PlanError as error:
                raise PlanError(
                    f"{range_.display_path}: {error.message}", code=error.code, hint=error.hint
                ) from error
            except _CORRUPT:
                schema = None
            if file.window.failure is not None:
                raise file.window.failure
            failure = file.decompressed.failure if file.decompressed is not None else None
            if isinstance(failure, RecordError) and failure.code == NOT_COMPRESSED:
                raise corrupt_file_error(failure, range_)
        if schema is None:
            return None
        for name, value in hive_values(range_.path).items():
            if name not in schema.names:
                is_integer = value is not None and re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value)
                schema = schema.append(pa.field(name, pa.int64() if is_integer else pa.string()))
        return schema

    def _add_columns(
        self,
        rows: pa.RecordBatch,
        positions: pa.Int64Array,
        range_: FileRange,
        hive: dict[str, str | None],
        read: Read,
    ) -> pa.RecordBatch:
        """Returns rows with the columns of the path and the requested metadata."""
        assert self.columns is not None
        count = rows.num_rows
        columns = [
            _repeat(hive[field.name], field, count)
            if field.name in hive
            else rows.column(field.name)
            for field in self.columns
        ]
        metadata = {
            "path": range_.display_path,
            "name": PurePosixPath(range_.display_path).name,
            "modified": range_.modified // 1000,
            "size": range_.size,
        }
        for name in read.metadata:
            if name == "position":
                columns.append(pc.add(positions, range_.line))
            else:
                columns.append(
                    pa.repeat(pa.scalar(metadata[name], METADATA.field(name).type), count)
                )
        names = [*self.columns.names, *read.metadata]
        return pa.record_batch(columns, names=names)


def hive_values(path: str) -> dict[str, str | None]:
    """Returns the values of the directories `name=value` of a path."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        if match := _HIVE.match(part):
            values[unquote(match[1])] = None if match[2] == HIVE_NULL else unquote(match[2])
    return values


def _repeat(value: str | None, field: pa.Field, count: int) -> pa.Array:
    return pa.repeat(column([value], field)[0], count)


def _max_position(positions: pa.Int64Array) -> int:
    return pc.max(positions).as_py() or 0 if len(positions) else 0


def _forward_rejected(file_read: Read, read: Read, first_line: int) -> int:
    """Forwards rejected records with positions in the file. Returns the largest position."""
    last = 0
    for bad in file_read.bad:
        last = max(last, bad.position)
        position = bad.position + first_line
        read.reject(bad.payload, bad.origin, position, bad.error, bad.part, bad.header)
    file_read.bad.clear()
    return last


def corrupt_file_error(error: Exception, range_: FileRange) -> RecordError:
    """Returns the error for the unreadable rest of a file, or for a file of another kind."""
    if isinstance(error, RecordError) and error.code == NOT_COMPRESSED:
        return DecodeError(
            f"cannot read {range_.display_path}: {error.message}",
            code="corrupt-file",
            hint=error.hint,
        )
    ratio = isinstance(error, RecordError) and error.code == "compression-ratio"
    detail = error.message if isinstance(error, RecordError) else f"{type(error).__name__}: {error}"
    return DecodeError(
        f"cannot read the rest of {range_.display_path}",
        code="compression-ratio" if ratio else "corrupt-file",
        detail=detail,
        hint="Decompress the file under another name if you trust its origin."
        if ratio
        else "Add a complete copy of the file under another name.",
    )
