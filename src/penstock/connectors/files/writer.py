"""Writer of the files sink: one partition of a batch as hidden files."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from typing import Any, BinaryIO

import pyarrow as pa

from penstock.connectors.files.compression import compressed_stream
from penstock.connectors.files.directories import Directories
from penstock.connectors.files.staging import Part, StagingArea
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk import Failure, FileFormat, Receipt, Rejected, Writer

MAX_OPEN_FILES = 100
MAX_PART_NUMBER = 99_999
"""The number of a part for which the length of paths is checked."""


class FileLayout:
    """The layout of files: format, compression, directories, names, maximum size."""

    def __init__(
        self,
        file_format: FileFormat[Any],
        codec: str | None,
        suffix: str,
        directories: Directories,
        max_size: int,
        needs_schema: bool,
        prefix: str,
        name_suffix: str = "",
    ) -> None:
        self.format = file_format
        self.codec = codec
        self.suffix = suffix
        self.directories = directories
        self.max_size = max_size
        self.needs_schema = needs_schema
        self.prefix = prefix
        self.name_suffix = name_suffix


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
        names = layout.directories.names
        missing = [name for name in names if name not in schema.names]
        if missing:
            option = (
                "partition_by" if missing[0] in layout.directories.columns else "partition_time"
            )
            raise PlanError(
                f'unknown column "{missing[0]}" in {option}',
                code="unknown-column",
                hint=did_you_mean(missing[0], schema.names),
            )
        unstored = layout.directories.unstored
        self._schema = pa.schema([field for field in schema if field.name not in unstored])
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
            for folder, indexes in self._layout.directories.group(rows):
                if folder and (excess := self._excess(folder)) is not None:
                    too_long = _path_error(self._layout.directories.names, excess)
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

    def _excess(self, folder: str) -> str | None:
        """Returns the limit of names that the files of a directory exceed, or None."""
        suffix = self._layout.name_suffix or self._layout.suffix
        name = f"{self._layout.prefix}-{self._stem(MAX_PART_NUMBER)}{suffix}"
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
        layout = self._layout
        part = Part(
            file.temp, folder, stem, layout.suffix, file.rows, size, time.time(), schema,
            layout.name_suffix,
        )  # fmt: skip
        self._parts.append(part)

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
