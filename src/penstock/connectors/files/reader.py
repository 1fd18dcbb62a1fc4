"""Reading of one file as rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.corruption import CORRUPT, corrupt_file_error, is_of_another_kind
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.opened_file import Failures, OpenedFile
from penstock.connectors.files.path_columns import (
    METADATA,
    add_path_columns,
    path_metadata,
    values_of_columns,
)
from penstock.connectors.files.storage import Storage
from penstock.core.errors import DecodeError, Permanent, PlanError
from penstock.sdk import FileFormat, Read
from penstock.sdk.columns.names import check_distinct
from penstock.sdk.columns.rows import column
from penstock.sdk.forked import iterate_forked
from penstock.sdk.record import PAYLOAD, BadRecord

ORIGIN = PAYLOAD.field("origin")


class DecodedPart(NamedTuple):
    """Rows of a file with their positions, and the bad records before them.

    `failure` is the error that ends the file, in its last part.
    """

    rows: pa.RecordBatch | None
    positions: pa.Int64Array | None
    bad: list[BadRecord]
    failure: Exception | None = None


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
        schema = self._file_columns(hive)
        last_position = 0
        failure: Exception | None = None
        with storage.convert_errors("open", range_.display_path):
            file = self._open(storage, path, range_)
        with file:
            if read.isolated and not storage.survives_fork:
                with storage.convert_errors("read", range_.display_path):
                    file.copy_to_disk()
            for part in self._parts(file, storage, schema, range_, read):
                last_position = max(last_position, _forward_rejected(part.bad, read, range_.line))
                failure = part.failure
                if part.rows is not None and part.rows.num_rows:
                    last_position = max(last_position, _max_position(part.positions))
                    yield self._add_columns(part.rows, part.positions, range_, hive, read)
        if failure is not None:
            read.reject(
                None,
                range_.origin,
                range_.line + last_position + 1,
                corrupt_file_error(failure, range_),
            )

    def _open(self, storage: Storage, path: str, range_: FileRange) -> OpenedFile:
        return OpenedFile(storage, path, range_, self.format, self.compression)

    def _parts(
        self, file: OpenedFile, storage: Storage, schema: pa.Schema, range_: FileRange, read: Read
    ) -> Iterator[DecodedPart]:
        """Yields the content of a file. A crash of an isolated decoder is a failure."""

        def decode() -> Iterator[DecodedPart]:
            return self._decode(file, storage, schema, range_, read)

        if not read.isolated:
            yield from decode()
            return
        try:
            yield from iterate_forked(decode)
        except DecodeError as error:
            yield DecodedPart(None, None, [], error)

    def _decode(
        self, file: OpenedFile, storage: Storage, schema: pa.Schema, range_: FileRange, read: Read
    ) -> Iterator[DecodedPart]:
        file_read = Read(read.columns, read.conjuncts, read.metadata)
        file_format = self.format.without_start() if range_.start else self.format
        file_format = file_format.inside_record() if range_.starts_inside else file_format
        failure: Exception | None = None
        try:
            file.check_kind()
            content = file.checked() if file_format.spans_lines else file.stream
            for rows, positions in file_format.read_file(content, schema, range_.origin, file_read):
                bad, file_read.bad = file_read.bad, []
                yield DecodedPart(rows, positions, bad)
        except CORRUPT as error:
            failure = error
        unread, corrupt = file.failures
        if unread is not None:
            raise storage.convert_error(unread, "read", range_.display_path) from failure
        yield DecodedPart(None, None, file_read.bad, corrupt or failure)

    def record(
        self, storage: Storage, path: str, payload: bytes, header: bytes | None
    ) -> pa.RecordBatch:
        """Returns the rows of a single record of a file. Raises RecordError.

        Reads a missing header from the file.
        """
        assert self.columns is not None
        hive = self._hive_columns(path)
        schema = self._file_columns(hive)
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
        return values_of_columns(path, self.columns)

    def _file_columns(self, hive: Container[str]) -> pa.Schema:
        assert self.columns is not None
        return pa.schema([field for field in self.columns if field.name not in hive])

    def _header(self, storage: Storage, path: str, range_: FileRange) -> bytes:
        try:
            with self._open(storage, path, range_) as file:
                return self.format.header(file.stream)
        except OSError as error:
            raise DecodeError(
                f"cannot read the header of {path}: the file does not exist", code="missing-file"
            ) from error

    def check_header(self, storage: Storage, path: str, range_: FileRange) -> None:
        """Raises Permanent if the header of a file lacks columns, and for a file of another kind.

        Ignores a damaged file.
        """
        schema = self._file_columns(self._hive_columns(range_.path))
        with (
            storage.convert_errors("read", range_.display_path),
            self._open(storage, path, range_) as file,
        ):
            failure: Exception | None = None
            try:
                file.check_kind()
                self.format.check_file(file.stream, schema, range_.origin)
            except CORRUPT as error:
                if file.failures[0] is not None:
                    raise
                failure = error
            if is_of_another_kind(failure := file.failures[1] or failure):
                other = corrupt_file_error(failure, range_)
                raise Permanent(other.message, code=other.code, hint=other.hint)

    def infer_schema(self, storage: Storage, path: str, range_: FileRange) -> pa.Schema | None:
        """Returns the columns of a file, including those of its path; None without any.

        Raises DecodeError for a file that is not compressed, or compressed with another codec.
        """
        with (
            storage.convert_errors("read", range_.display_path),
            self._open(storage, path, range_) as file,
        ):
            try:
                file.check_kind()
                schema = self._infer(storage, file)
            except DecodeError as error:
                raise corrupt_file_error(error, range_) from error
            except PlanError as error:
                raise PlanError(
                    f"{range_.display_path}: {error.message}", code=error.code, hint=error.hint
                ) from error
            unread, failure = file.failures
            if unread is not None:
                raise unread
            if is_of_another_kind(failure):
                raise corrupt_file_error(failure, range_)
        if schema is None:
            return None
        return add_path_columns(schema, range_.path)

    def _infer(self, storage: Storage, file: OpenedFile) -> pa.Schema | None:
        """Returns the columns of a file; None for a damaged one.

        The decoder runs in a fork if a damaged file can crash it.
        """

        def infer() -> Iterator[tuple[pa.Schema | None, Failures]]:
            try:
                schema = self.format.infer_file(file.stream)
                check_distinct(schema or ())
            except CORRUPT:
                schema = None
            yield schema, file.failures

        if not (self.format.native_decoder and storage.survives_fork):
            return next(infer())[0]
        try:
            ((schema, file.failures),) = iterate_forked(infer)
        except DecodeError:
            return None
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
            ORIGIN.name: range_.origin,
            **path_metadata(range_.display_path, generations=False),
            "modified": range_.modified // 1000,
            "size": range_.size,
        }
        for name in read.metadata:
            if name == "position":
                columns.append(pc.add(positions, range_.line))
            else:
                type_ = ORIGIN.type if name == ORIGIN.name else METADATA.field(name).type
                columns.append(pa.repeat(pa.scalar(metadata[name], type_), count))
        names = [*self.columns.names, *read.metadata]
        return pa.record_batch(columns, names=names)


def _repeat(value: str | None, field: pa.Field, count: int) -> pa.Array:
    return pa.repeat(column([value], field)[0], count)


def _max_position(positions: pa.Int64Array) -> int:
    return pc.max(positions).as_py() or 0


def _forward_rejected(rejected: Sequence[BadRecord], read: Read, first_line: int) -> int:
    """Forwards rejected records with positions in the file. Returns the largest position."""
    last = 0
    for bad in rejected:
        last = max(last, bad.position)
        position = bad.position + first_line
        read.reject(bad.payload, bad.origin, position, bad.error, bad.part, bad.header)
    return last
