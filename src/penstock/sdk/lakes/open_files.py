"""Data files that a writer has open: one for each partition of the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, Generic, TypeVar

import pyarrow as pa

from penstock.sdk.lakes.reader import parquet

F = TypeVar("F")
MAX_OPEN_FILES = 100
ROW_GROUP_BYTES, PARTITIONED_ROW_GROUP_BYTES = 64 << 20, 16 << 20


class OpenFile(ABC, Generic[F]):
    """A data file that is open for writing."""

    def __init__(
        self, stream: BinaryIO, schema: pa.Schema, compression: str, *, is_partitioned: bool
    ) -> None:
        self.rows = 0
        self._stream = stream
        size = PARTITIONED_ROW_GROUP_BYTES if is_partitioned else ROW_GROUP_BYTES
        self._writer: Any = parquet(compression=compression, row_group_size=size).file_writer(
            stream, schema
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends rows."""
        self._writer.write(rows)
        self.rows += rows.num_rows

    @property
    def metadata(self) -> Any:
        """The metadata of the file after its last row."""
        return self._writer.metadata

    def close(self) -> F:
        """Completes the file durably."""
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        return self.complete(size)

    @abstractmethod
    def complete(self, size: int) -> F:
        """Returns the facts of a complete file, after it is on disk."""

    @abstractmethod
    def delete(self) -> None:
        """Deletes the file."""

    def abort(self) -> None:
        """Closes and deletes the file."""
        for action in (self._writer.close, self._stream.close, self.delete):
            with suppress(Exception):
                action()


class OpenFiles(Generic[F]):
    """The files of a writer. Beyond a maximum the largest open file is completed."""

    def __init__(self) -> None:
        self._open: dict[str, OpenFile[F]] = {}
        self._complete: list[tuple[OpenFile[F], F]] = []

    def get(self, key: str, create: Callable[[], OpenFile[F]]) -> OpenFile[F]:
        """Returns the open file of a partition, a new one if there is none."""
        if key not in self._open:
            if len(self._open) >= MAX_OPEN_FILES:
                largest = max(self._open, key=lambda each: self._open[each].rows)
                self._close(largest)
            self._open[key] = create()
        return self._open[key]

    def _close(self, key: str) -> None:
        self._complete.append((self._open[key], self._open[key].close()))
        del self._open[key]

    def close(self) -> list[F]:
        """Completes all files."""
        while self._open:
            self._close(next(iter(self._open)))
        return [facts for _, facts in self._complete]

    def abort(self) -> None:
        """Deletes all files."""
        for file in self._open.values():
            file.abort()
        for file, _ in self._complete:
            with suppress(Exception):
                file.delete()
        self._open, self._complete = {}, []
