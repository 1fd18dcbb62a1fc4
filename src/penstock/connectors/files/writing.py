"""One partition of a batch as hidden files."""

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

from penstock.connectors.files.compression import deflated
from penstock.connectors.files.parts import Life, Part
from penstock.connectors.files.reading import HIVE_NULL
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk import Failure, FileFormat, Receipt, Writer

OPEN_AT_ONCE = 100
PLAIN = " ,.;+-_~!@$&()|<>"


class Shape:
    """How rows become files: format, compression, directories, the most bytes of one."""

    def __init__(
        self,
        file_format: FileFormat[Any],
        codec: str | None,
        suffix: str,
        partition_by: Sequence[str],
        split: int,
        keep_schema: bool,
    ) -> None:
        self.format = file_format
        self.codec = codec
        self.suffix = suffix
        self.partition_by = tuple(partition_by)
        self.split = split
        self.keep_schema = keep_schema


class OpenFile:
    """A hidden file that is being written."""

    def __init__(self, life: Life, shape: Shape, temp: str, schema: pa.Schema) -> None:
        self.temp = temp
        self.rows = 0
        self._storage = life.storage
        self._path = life.at(temp)
        self._file: BinaryIO = life.storage.create(self._path)
        self._stream = deflated(self._file, shape.codec)
        self._writer = shape.format.file_writer(self._stream, schema)

    def write(self, rows: pa.RecordBatch) -> Sequence[Failure]:
        """Appends rows; the failures of those that could not be encoded."""
        encoded = self._writer.write(rows)
        failures = encoded.failures if encoded is not None else ()
        self.rows += rows.num_rows - len(failures)
        return failures

    @property
    def bytes(self) -> int:
        """How large the file is by now."""
        return self._file.tell()

    def close(self) -> int:
        """Completes the file, durably. Gives its size."""
        self._writer.close()
        if self._stream is not self._file:
            self._stream.close()
        size = self._file.tell()
        self._storage.seal(self._file)
        return size

    def drop(self) -> None:
        """Deletes the file."""
        with suppress(Exception):
            self._writer.close()
        with suppress(Exception):
            self._file.close()
        self._storage.delete(self._path)


class FilesWriter(Writer):
    """Writes one partition of a batch into hidden files, one for each directory."""

    def __init__(
        self, life: Life, shape: Shape, batch: int, partition: int, schema: pa.Schema
    ) -> None:
        self._life = life
        self._shape = shape
        self._batch = batch
        self._partition = partition
        missing = [name for name in shape.partition_by if name not in schema.names]
        if missing:
            raise PlanError(
                f'partition_by names "{missing[0]}", which is not a column',
                code="unknown-column",
                hint=did_you_mean(missing[0], schema.names),
            )
        self._schema = pa.schema([f for f in schema if f.name not in shape.partition_by])
        if not self._schema.names:
            raise PlanError("partition_by names all columns, so there is nothing left to write")
        self._open: dict[str, OpenFile] = {}
        self._parts: list[Part] = []

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        failures: list[Failure] = []
        with self._told():
            for folder, index in self._folders(rows):
                part = rows.select(self._schema.names)
                part = part if index is None else part.take(pa.array(index))
                for at, error in self._file(folder).write(part):
                    failures.append(Failure(at if index is None else int(index[at]), error))
                if self._open[folder].bytes >= self._shape.split:
                    self._finish(folder)
        return sorted(failures, key=lambda failure: failure[0])

    def commit(self) -> Receipt:
        with self._told():
            for folder in list(self._open):
                self._finish(folder)
        return {"partition": self._partition, "files": [asdict(part) for part in self._parts]}

    def abort(self) -> None:
        for file in self._open.values():
            file.drop()
        self._life.discard(self._parts)
        self._open, self._parts = {}, []

    def _folders(self, rows: pa.RecordBatch) -> Iterator[tuple[str, Any]]:
        """The directories that rows belong to, with the rows of each."""
        if not self._shape.partition_by:
            yield "", None
            return
        names = [
            pc.binary_join_element_wise(f"{quote(name, PLAIN)}=", _values(rows.column(name)), "")
            for name in self._shape.partition_by
        ]
        keys = pc.dictionary_encode(pc.binary_join_element_wise(*names, "/"))
        codes = keys.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        cuts = np.flatnonzero(np.diff(codes[order])) + 1
        for index in np.split(order, cuts):
            if len(index):
                yield keys.dictionary[int(codes[index[0]])].as_py(), index

    def _file(self, folder: str) -> OpenFile:
        if folder not in self._open:
            if len(self._open) >= OPEN_AT_ONCE:
                self._finish(max(self._open, key=lambda each: self._open[each].rows))
            temp = self._life.temp(self._batch, uuid.uuid4().hex)
            self._open[folder] = OpenFile(self._life, self._shape, temp, self._schema)
        return self._open[folder]

    def _finish(self, folder: str) -> None:
        file = self._open[folder]
        size = file.close()
        del self._open[folder]
        again = sum(part.folder == folder for part in self._parts)
        stem = f"{self._life.name}-{self._batch:08d}-{self._partition:05d}"
        stem += f"-{again}" if again else ""
        schema = ""
        if self._shape.keep_schema:
            from penstock.connectors.files.merging import schema_text

            schema = schema_text(self._schema)
        self._parts.append(
            Part(file.temp, folder, stem, self._shape.suffix, file.rows, size, time.time(), schema)
        )

    def _told(self) -> AbstractContextManager[None]:
        storage = self._life.storage
        return storage.told("write to", storage.url(self._life.root))


def _values(column: pa.Array) -> pa.Array:
    """The values of a column as they stand in directory names."""
    distinct = pc.dictionary_encode(column, null_encoding="encode")
    names = [
        HIVE_NULL if value is None else quote(_text(value), PLAIN)
        for value in distinct.dictionary.to_pylist()
    ]
    return pa.array(names, pa.string()).take(distinct.indices)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value)
