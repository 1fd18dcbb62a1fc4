"""Reading in a task: rows of the files of versions, with metadata."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import registry
from penstock.sdk.format import FileFormat
from penstock.sdk.lakes.files import FileOfVersion, data_gone
from penstock.sdk.operations import Operation
from penstock.sdk.record import PAYLOAD, Read

F = TypeVar("F", bound=FileOfVersion)
Rows = tuple[pa.RecordBatch, pa.Int64Array]
"""Rows and their positions from 1."""
_OPERATIONS = {"insert": Operation.INSERT, "delete": Operation.DELETE}
_ROWS = 65_536


@dataclass(frozen=True)
class FileReader(ABC, Generic[F]):
    """A reader of rows of `columns`. `operation` is the operation column, or None."""

    columns: pa.Schema
    operation: str | None
    skips_gaps: bool

    @abstractmethod
    def origin(self, file: F) -> str:
        """Returns the name of a file for messages."""

    @abstractmethod
    def errors(self, operation: str, origin: str) -> AbstractContextManager[None]:
        """Returns a context that raises the errors of the client as those of Penstock."""

    @abstractmethod
    def open_input(self, file: F) -> BinaryIO:
        """Opens a file. Raises FileNotFoundError."""

    @abstractmethod
    def constant(self, field: pa.Field, file: F) -> pa.Scalar | None:
        """Returns the value of a column in all rows of a file; None if the file has the column."""

    @abstractmethod
    def metadata(self, file: F) -> tuple[pa.Schema, Mapping[str, Any]]:
        """Returns the metadata columns, and their values for a file."""

    @abstractmethod
    def content(
        self, file: F, content: BinaryIO, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array, pa.Array | None]]:
        """Yields rows of the columns in a file, their positions, and their operations.

        Operations are None if those of all rows follow from the kind of the file.
        """

    def rows(self, file: F, read: Read) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a file with the requested metadata."""
        origin = self.origin(file)
        if file.kind == "gone":
            message = f"version {file.version} was removed before being read"
            read.reject(None, origin, 0, DecodeError(message, code="data-gone"))
            return
        with self.errors("open", origin):
            content = self._open(file, origin, read)
        if content is None:
            return
        with self.errors("read", origin), content:
            for rows, positions, operations in self.content(file, content, read):
                if rows.num_rows:
                    yield self._complete(rows, positions, operations, file, read)

    def stored(self, file: F) -> list[pa.Field]:
        """Returns the columns whose values are in a file."""
        return [
            field
            for field in self.columns
            if field.name != self.operation and self.constant(field, file) is None
        ]

    def _open(self, file: F, origin: str, read: Read) -> BinaryIO | None:
        """Opens a file. One that was removed is rejected as a record, or raises Permanent."""
        try:
            return self.open_input(file)
        except FileNotFoundError as error:
            lost = data_gone(f"{origin} of version {file.version} was removed before being read")
            if not self.skips_gaps:
                raise lost from error
            read.reject(None, origin, 0, DecodeError(lost.message, code=lost.code))
            return None

    def _complete(
        self, rows: pa.RecordBatch, positions: pa.Int64Array, operations: pa.Array | None,
        file: F, read: Read,
    ) -> pa.RecordBatch:  # fmt: skip
        count = rows.num_rows
        columns = []
        for field in self.columns:
            if field.name == self.operation:
                single = pa.scalar(str(_OPERATIONS.get(file.kind)), pa.string())
                columns.append(pa.repeat(single, count) if operations is None else operations)
            elif (value := self.constant(field, file)) is not None:
                columns.append(pa.repeat(value, count))
            else:
                columns.append(rows.column(field.name))
        schema, values = self.metadata(file)
        values = {**values, PAYLOAD.names[1]: self.origin(file)}
        for name in read.metadata:
            if name == "position":
                columns.append(positions)
            else:
                type_ = schema.field(name).type if name in schema.names else pa.string()
                columns.append(pa.repeat(pa.scalar(values[name], type_), count))
        return pa.record_batch(columns, names=[*self.columns.names, *read.metadata])


def read_parquet(
    content: BinaryIO, schema: pa.Schema, origin: str, read: Read, count: int | None,
    options: Mapping[str, Any],
) -> Iterator[Rows]:  # fmt: skip
    """Yields the rows of a data file with `count` rows. A column that it lacks is null."""
    try:
        yield from parquet(**options).read_file(content, schema, origin, read)
    except Permanent as error:
        if error.code != "wrong-columns" or count is None:
            raise
        yield from null_rows(schema, count)


def null_rows(schema: pa.Schema, count: int) -> Iterator[Rows]:
    """Yields the rows of a file that is older than all of the columns."""
    for start in range(0, count, _ROWS):
        rows = range(start + 1, min(start + _ROWS, count) + 1)
        columns = [pa.nulls(len(rows), field.type) for field in schema]
        yield pa.record_batch(columns, schema=schema), pa.array(rows, pa.int64())


def parquet(**options: Any) -> FileFormat[Any]:
    """Returns the format of data files."""
    format_: Any = registry.find("format", "parquet")
    found: FileFormat[Any] = format_(format_.config_type(**options))
    return found
