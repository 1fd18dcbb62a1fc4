"""One file as rows."""

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

from penstock.connectors.files.compression import Inflated, Window, codec_of
from penstock.connectors.files.log import Found
from penstock.connectors.files.storage import Storage
from penstock.core.errors import DecodeError, RecordError
from penstock.sdk import FileFormat, Read
from penstock.sdk.kit.rows import column

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
BUFFER = 1 << 20
_HIVE = re.compile(r"([^/=]+)=([^/]*)\Z")
_CORRUPT = (
    RecordError, pa.ArrowException, OSError, EOFError, ValueError, LookupError,
    struct.error, zlib.error, lzma.LZMAError,
)  # fmt: skip


class Opened:
    """A file's content as its format sees it: a range of it, uncompressed, seekable if needed."""

    def __init__(self, storage: Storage, path: str, found: Found, form: Form) -> None:
        codec = codec_of(found.path, form.compression)
        seekable = found.start > 0 or (form.format.needs_seek and codec is None)
        self.window = Window(storage.open(path, seekable=seekable), found.start, found.stop)
        self.inflated: Inflated | None = None
        self.stream = cast(BinaryIO, io.BufferedReader(self.window, BUFFER))
        if codec is not None:
            lines = form.format.position == "line"
            self.inflated = Inflated(self.stream, codec, lines)
            self.stream = cast(BinaryIO, io.BufferedReader(self.inflated, BUFFER))
            if form.format.needs_seek:
                self.stream = self._unpacked(self.stream)

    @staticmethod
    def _unpacked(packed: BinaryIO) -> BinaryIO:
        unpacked = tempfile.TemporaryFile()  # noqa: SIM115
        with packed:
            while part := packed.read(BUFFER):
                unpacked.write(part)
        unpacked.seek(0)
        return cast(BinaryIO, unpacked)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


class Form:
    """How files become rows: the format, the compression, the columns."""

    def __init__(
        self, file_format: FileFormat[Any], compression: str, columns: pa.Schema | None
    ) -> None:
        self.format = file_format
        self.compression = compression
        self.columns = columns

    def rows(
        self, storage: Storage, path: str, found: Found, read: Read
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file. What is broken of it is one dead letter."""
        assert self.columns is not None
        given = {k: v for k, v in hive_values(found.path).items() if k in self.columns.names}
        schema = pa.schema([field for field in self.columns if field.name not in given])
        own = Read(read.columns, read.conjuncts, read.metadata)
        last = 0
        failure: Exception | None = None
        with storage.told("open", found.shown):
            opened = Opened(storage, path, found, self)
        with opened:
            try:
                for rows, positions in self.format.read_file(
                    opened.stream, schema, found.origin, own
                ):
                    last = max(last, _top(positions), _hand_over(own, read, found.line))
                    if rows.num_rows:
                        yield self._whole(rows, positions, found, given, read)
            except _CORRUPT as error:
                if opened.window.failure is not None:
                    raise storage.outside(opened.window.failure, "read", found.shown) from error
                failure = error
            if opened.inflated is not None and opened.inflated.failure is not None:
                failure = opened.inflated.failure
        last = max(last, _hand_over(own, read, found.line))
        if failure is not None:
            read.reject(None, found.origin, found.line + last + 1, corrupt(failure, found))

    def record(self, storage: Storage, path: str, payload: bytes) -> pa.RecordBatch:
        """One record of a file on its own, as rows. Raises RecordError."""
        assert self.columns is not None
        given = {k: v for k, v in hive_values(path).items() if k in self.columns.names}
        schema = pa.schema([field for field in self.columns if field.name not in given])
        found, read = Found(path, 0, 0), Read()
        head = b"" if self.format.lines else self._head(storage, path, found)
        parts = list(self.format.read_file(io.BytesIO(head + payload), schema, path, read))
        for bad in read.bad:
            raise bad.error
        whole = [self._whole(rows, at, found, given, read) for rows, at in parts]
        return pa.concat_batches([pa.RecordBatch.from_pylist([], self.columns), *whole])

    def _head(self, storage: Storage, path: str, found: Found) -> bytes:
        try:
            with Opened(storage, path, found, self) as opened:
                return self.format.head(opened.stream)
        except OSError as error:
            raise DecodeError(
                f"{path} is gone, and with it the names of its columns", code="file-missing"
            ) from error

    def infer(self, storage: Storage, path: str, found: Found) -> pa.Schema | None:
        """The columns of a file, those that its path gives included."""
        with storage.told("read", found.shown), Opened(storage, path, found, self) as opened:
            schema = self.format.infer_file(opened.stream)
        if schema is None:
            return None
        for name, value in hive_values(found.path).items():
            if name not in schema.names:
                whole = value is not None and re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value)
                schema = schema.append(pa.field(name, pa.int64() if whole else pa.string()))
        return schema

    def _whole(
        self,
        rows: pa.RecordBatch,
        positions: pa.Int64Array,
        found: Found,
        given: dict[str, str | None],
        read: Read,
    ) -> pa.RecordBatch:
        """Rows with the columns that the path gives, and the metadata asked for."""
        assert self.columns is not None
        count = rows.num_rows
        columns = [
            _repeated(given[field.name], field, count)
            if field.name in given
            else rows.column(field.name)
            for field in self.columns
        ]
        about = {
            "path": found.shown,
            "name": PurePosixPath(found.shown).name,
            "modified": found.modified // 1000,
            "size": found.size,
        }
        for name in read.metadata:
            if name == "position":
                columns.append(pc.add(positions, found.line))
            else:
                columns.append(pa.repeat(pa.scalar(about[name], METADATA.field(name).type), count))
        names = [*self.columns.names, *read.metadata]
        return pa.record_batch(columns, names=names)


def hive_values(path: str) -> dict[str, str | None]:
    """What the directories `name=value` above a file say."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        if match := _HIVE.match(part):
            values[unquote(match[1])] = None if match[2] == HIVE_NULL else unquote(match[2])
    return values


def _repeated(value: str | None, field: pa.Field, count: int) -> pa.Array:
    return pa.repeat(column([value], field)[0], count)


def _top(positions: pa.Int64Array) -> int:
    return pc.max(positions).as_py() or 0 if len(positions) else 0


def _hand_over(own: Read, read: Read, shift: int) -> int:
    """Passes bad records on, their positions counted from the file's beginning."""
    top = 0
    for bad in own.bad:
        top = max(top, bad.position)
        read.reject(bad.payload, bad.origin, bad.position + shift, bad.error, bad.part)
    own.bad.clear()
    return top


def corrupt(error: Exception, found: Found) -> RecordError:
    """The error of the rest of a file that cannot be read."""
    said = error.message if isinstance(error, RecordError) else f"{type(error).__name__}: {error}"
    return DecodeError(
        f"the rest of {found.shown} cannot be read",
        code="corrupt-file",
        detail=said,
        hint="put a whole file there under another name",
    )
