"""Writing in a task: data files of one partition of a batch, which the driver commits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import Rejected
from penstock.sdk.columns.binary_arrays import sort_failures
from penstock.sdk.keys import split_null_keys
from penstock.sdk.lakes.open_files import OpenFile, OpenFiles
from penstock.sdk.operations import Operation
from penstock.sdk.record import Failure
from penstock.sdk.sink import Writer

F = TypeVar("F")
DELETED = "_penstock_deleted"
"""The column of staged rows that tells deletes from upserts."""
MISSING = "expected a value, found null"


class LakeWriter(Writer, Generic[F]):
    """A writer of one partition of a batch.

    Without `key` the files become files of the table. With `key` they are staged, with the
    operation of each row, and the driver merges them into the table.
    """

    def __init__(self, key: Sequence[str]) -> None:
        self.key = key
        self.files: OpenFiles[F] = OpenFiles()

    @abstractmethod
    def errors(self) -> AbstractContextManager[None]:
        """Returns a context that raises the errors of the client as those of Penstock."""

    @abstractmethod
    def convert(
        self, rows: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, pa.Int64Array | None, list[Failure]]:
        """Returns rows with the columns of the table, their indexes if some cannot be stored, and
        the errors of the others."""

    @abstractmethod
    def unstorable(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.BooleanArray, Rejected]]:
        """Yields which rows cannot be stored, unless they are deletes, with the error of each."""

    @abstractmethod
    def parts(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, OpenFile[F]]]:
        """Yields the rows of each data file with the file."""

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        deleted = pa.repeat(pa.scalar(False), rows.num_rows)
        if operations is not None:
            deleted = pc.equal(operations, Operation.DELETE.value)
        rows, indexes, failures = self.convert(rows)
        if indexes is not None:
            deleted = deleted.take(indexes)
        valid, rejected = split_null_keys(rows, self.key)
        for wrong, error in self.unstorable(rows):
            wrong = pc.and_(pc.and_not(pc.fill_null(wrong, False), deleted), valid)
            rejected += [Failure(each, error) for each in pc.indices_nonzero(wrong).to_pylist()]
            valid = pc.and_not(valid, wrong)
        if self.key:
            rows = rows.append_column(DELETED, deleted)
        with self.errors():
            for part, file in self.parts(rows.filter(valid) if rejected else rows):
                file.write(part)
        if indexes is not None:
            rejected = [Failure(indexes[each.index].as_py(), each.error) for each in rejected]
        return sort_failures([*failures, *rejected])

    def abort(self) -> None:
        self.files.abort()


def missing_values(
    rows: pa.RecordBatch, required: Sequence[str]
) -> Iterator[tuple[pa.BooleanArray, Rejected]]:
    """Yields which rows have null in a required column, with the error of each column."""
    for name in required:
        error = Rejected(f'column "{name}": {MISSING}', code="missing-value")
        yield pc.is_null(rows.column(name)), error
