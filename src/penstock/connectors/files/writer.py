"""Writer of the files sink: one partition of a batch as hidden files."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from typing import Any, BinaryIO
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.compression import compressed_stream
from penstock.connectors.files.reader import HIVE_NULL
from penstock.connectors.files.staging import Part, StagingArea
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk import Failure, FileFormat, Receipt, Rejected, Writer

MAX_OPEN_FILES = 100
MAX_PART_NUMBER = 99_999
"""The number of a part for which the length of paths is checked."""
UNQUOTED = " ,.;+-_~!@$&()|<>"


class FileLayout:
    """The layout of files: format, compression, directories, maximum size."""

    def __init__(
        self,
        file_format: FileFormat[Any],
        codec: str | None,
        suffix: str,
        partition_by: Sequence[str],
        max_size: int,
        needs_schema: bool,
        prefix: str,
    ) -> None:
        self.format = file_format
        self.codec = codec
        self.suffix = suffix
        self.partition_by = tuple(partition_by)
        self.max_size = max_size
        self.needs_schema = needs_schema
        self.prefix = prefix


class OpenFile:
    """A hidden file that is open for writing."""

    def __init__(self, area: StagingArea, layout: FileLayout, temp: str, schema: pa.Schema) -> None:
        self.temp = temp
        self.rows = 0
        self._storage = area.storage
        self._path = area.path(temp)
        self._file: BinaryIO = area.storage.create(self._path)
        self._stream = compressed_stream(self._file, layout.codec)
        self._writer = layout.format.file_writer(self._stream, schema)

    def write(self, rows: pa.RecordBatch) -> Sequence[Failure]:
        """Appends rows. Returns the failures of rows that cannot be encoded."""
        encoded = self._writer.write(rows)
        failures = encoded.failures if encoded is not None else ()
        self.rows += rows.num_rows - len(failures)
        return failures

    @property
    def bytes(self) -> int:
        """The current size of the file."""
        return self._file.tell()

    def close(self) -> int:
        """Completes the file durably. Returns its size."""
        self._writer.close()
        if self._stream is not self._file:
            self._stream.close()
        size = self._file.tell()
        self._storage.close_durably(self._file)
        return size

    def abort(self) -> None:
        """Deletes the file."""
        with suppress(Exception):
            self._writer.close()
        with suppress(Exception):
            self._file.close()
        self._storage.delete(self._path)


class FilesWriter(Writer):
    """Writes one partition of a batch to hidden files, one for each directory."""

    def __init__(
        self, area: StagingArea, layout: FileLayout, batch: int, partition: int, schema: pa.Schema
    ) -> None:
        self._area = area
        self._layout = layout
        self._batch = batch
        self._partition = partition
        missing = [name for name in layout.partition_by if name not in schema.names]
        if missing:
            raise PlanError(
                f'unknown column "{missing[0]}" in partition_by',
                code="unknown-column",
                hint=did_you_mean(missing[0], schema.names),
            )
        self._schema = pa.schema(
            [field for field in schema if field.name not in layout.partition_by]
        )
        if not self._schema.names:
            raise PlanError("partition_by contains all columns; expected at least one other column")
        self._open: dict[str, OpenFile] = {}
        self._parts: list[Part] = []

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        failures: list[Failure] = []
        with self._convert_errors():
            for folder, indexes in self._group_by_folder(rows):
                if folder and (excess := self._excess(folder)) is not None:
                    too_long = _path_error(self._layout.partition_by, excess)
                    failures += [Failure(int(index), too_long) for index in indexes]
                    continue
                selected = rows.select(self._schema.names)
                if indexes is not None:
                    selected = selected.take(pa.array(indexes))
                for index, error in self._file(folder).write(selected):
                    row = index if indexes is None else int(indexes[index])
                    failures.append(Failure(row, error))
                if self._open[folder].bytes >= self._layout.max_size:
                    self._close_file(folder)
        return sorted(failures, key=lambda failure: failure[0])

    def commit(self) -> Receipt:
        with self._convert_errors():
            for folder in list(self._open):
                self._close_file(folder)
        return {"partition": self._partition, "files": [asdict(part) for part in self._parts]}

    def abort(self) -> None:
        for file in self._open.values():
            file.abort()
        self._area.discard(self._parts)
        self._open, self._parts = {}, []

    def _group_by_folder(self, rows: pa.RecordBatch) -> Iterator[tuple[str, Any]]:
        """Yields each directory with the indexes of its rows; None for all rows."""
        if not self._layout.partition_by:
            yield "", None
            return
        names = [
            pc.binary_join_element_wise(
                f"{quote(name, UNQUOTED)}=", _directory_values(rows.column(name)), ""
            )
            for name in self._layout.partition_by
        ]
        keys = pc.dictionary_encode(pc.binary_join_element_wise(*names, "/"))
        codes = keys.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        boundaries = np.flatnonzero(np.diff(codes[order])) + 1
        for indexes in np.split(order, boundaries):
            if len(indexes):
                yield keys.dictionary[int(codes[indexes[0]])].as_py(), indexes

    def _excess(self, folder: str) -> str | None:
        """Returns the limit of names that the files of a directory exceed, or None."""
        name = f"{self._layout.prefix}-{self._stem(MAX_PART_NUMBER)}{self._layout.suffix}"
        return self._area.storage.excess(self._area.path(f"{folder}/{name}"))

    def _file(self, folder: str) -> OpenFile:
        if folder not in self._open:
            if len(self._open) >= MAX_OPEN_FILES:
                self._close_file(max(self._open, key=lambda folder: self._open[folder].rows))
            temp = self._area.temp(self._batch, uuid.uuid4().hex)
            self._open[folder] = OpenFile(self._area, self._layout, temp, self._schema)
        return self._open[folder]

    def _close_file(self, folder: str) -> None:
        file = self._open[folder]
        size = file.close()
        del self._open[folder]
        closed_parts = sum(part.folder == folder for part in self._parts)
        stem = self._stem(closed_parts)
        schema = ""
        if self._layout.needs_schema:
            from penstock.connectors.files.merging import encode_schema

            schema = encode_schema(self._schema)
        self._parts.append(
            Part(file.temp, folder, stem, self._layout.suffix, file.rows, size, time.time(), schema)
        )

    def _stem(self, number: int) -> str:
        """Returns the name of a part without prefix and suffix."""
        stem = f"{self._area.name}-{self._batch:08d}-{self._partition:05d}"
        return f"{stem}-{number}" if number else stem

    def _convert_errors(self) -> AbstractContextManager[None]:
        storage = self._area.storage
        return storage.convert_errors("write to", storage.url(self._area.root))


def _path_error(columns: Sequence[str], excess: str) -> Rejected:
    return Rejected(
        f"the values of {', '.join(columns)} make a path that is too long: {excess}",
        code="path-too-long",
        hint="Shorten the values in a transform, or partition by other columns.",
    )


def _directory_values(column: pa.Array) -> pa.Array:
    """Returns the values of a column as quoted directory names."""
    distinct = pc.dictionary_encode(column, null_encoding="encode")
    names = [
        quote(_text(value), UNQUOTED) if value.is_valid else HIVE_NULL
        for value in distinct.dictionary
    ]
    return pa.array(names, pa.string()).take(distinct.indices)


def _text(scalar: pa.Scalar) -> str:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        text = str(scalar.cast(pa.string()).as_py())
        return text.removesuffix("Z").removesuffix(".000000")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value)
