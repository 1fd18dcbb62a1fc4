"""Writing in a task: data files of one partition of a batch, which the driver commits."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.partition_values import Values, directory, group
from penstock.connectors.delta.statistics import Statistics
from penstock.connectors.delta.target import Target
from penstock.sdk import (
    BatchId,
    Failure,
    FileFormat,
    Operation,
    Receipt,
    Rejected,
    Writer,
    registry,
)
from penstock.sdk.keys import split_null_keys

DELETED = "_penstock_deleted"
"""The column of staged rows that tells deletes from upserts."""
MAX_OPEN_FILES = 100
ROW_GROUP_BYTES, PARTITIONED_ROW_GROUP_BYTES = 64 << 20, 16 << 20


@dataclass(frozen=True)
class DataFile:
    """A complete file. `values` are those of its partition."""

    name: str
    size: int
    rows: int
    statistics: str
    values: Values = field(default_factory=dict)


class DeltaWriter(Writer):
    """A writer of one partition of a batch.

    Without `key` the files become files of the table. With `key` they are staged, with the
    operation of each row, and the driver merges them into the table.
    """

    def __init__(
        self, location: Location, target: Target, batch: BatchId, partition: int,
        schema: pa.Schema, key: Sequence[str],
    ) -> None:  # fmt: skip
        self._columns = pa.schema(target.fields(schema.names))
        self._key = [field.name for field in target.fields(key)]
        self._partition_by = () if key else target.partition_by
        self._required = [each.name for each in self._columns if not each.nullable]
        self._texts = [
            name
            for name in target.partition_by
            if name in self._columns.names and pa.types.is_string(self._columns.field(name).type)
        ]
        self._location = location
        self._name = f"part-{batch.number:08d}-{partition:05d}"
        self._open: dict[str, _OpenFile] = {}
        self._files: list[DataFile] = []

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        columns = zip(rows.columns, self._columns, strict=True)
        rows = pa.record_batch(
            [column.cast(each.type) for column, each in columns], names=self._columns.names
        )
        deleted = pa.repeat(pa.scalar(False), rows.num_rows)
        if operations is not None:
            deleted = pc.equal(operations, Operation.DELETE.value)
        valid, failures = split_null_keys(rows, self._key)
        valid, rejected = self._split_unstorable(rows, valid, deleted)
        failures += rejected
        if self._key:
            rows = rows.append_column(DELETED, deleted)
        with convert_errors("write to", self._location.path):
            self._write(rows if not failures else rows.filter(valid))
        return sorted(failures, key=lambda failure: failure[0])

    def _split_unstorable(
        self, rows: pa.RecordBatch, valid: pa.BooleanArray, deleted: pa.BooleanArray
    ) -> tuple[pa.BooleanArray, list[Failure]]:
        """Returns for each row whether it can be stored, and the errors of the others."""
        failures = []
        checks = [
            (name, "expected a value, found null", "missing-value") for name in self._required
        ]
        checks += [(name, _EMPTY, "rejected") for name in self._texts]
        for name, text, code in checks:
            column = rows.column(name)
            wrong = pc.is_null(column) if code == "missing-value" else pc.equal(column, "")
            wrong = pc.and_(pc.and_not(pc.fill_null(wrong, False), deleted), valid)
            error = Rejected(f'column "{name}": {text}', code=code)
            failures += [Failure(each, error) for each in pc.indices_nonzero(wrong).to_pylist()]
            valid = pc.and_not(valid, wrong)
        return valid, failures

    def _write(self, rows: pa.RecordBatch) -> None:
        for values, indexes in group(rows, self._partition_by):
            part = rows.drop_columns([*values])
            if indexes is not None:
                part = part.take(pa.array(indexes))
            if part.num_rows:
                self._file(values, part.schema).write(part)

    def _file(self, values: Values, schema: pa.Schema) -> _OpenFile:
        folder = directory(values)
        key = repr(values)
        if key not in self._open:
            if len(self._open) >= MAX_OPEN_FILES:
                largest = max(self._open, key=lambda each: self._open[each].statistics.rows)
                self._files.append(self._open.pop(largest).close())
            name = f"{folder}{self._name}-{uuid.uuid4().hex}.snappy.parquet"
            self._open[key] = _OpenFile(self._location, name, values, schema)
        return self._open[key]

    def commit(self) -> Receipt:
        with convert_errors("write to", self._location.path):
            self._files += [file.close() for file in self._open.values()]
            self._open = {}
        return {"files": [asdict(file) for file in self._files]}

    def abort(self) -> None:
        for file in self._open.values():
            file.abort()
        for each in self._files:
            with suppress(Exception):
                self._location.delete(each.name)
        self._open, self._files = {}, []


_NULL = "expected a value, found null"
_EMPTY = "a partition column cannot have an empty text, which is read as null"


class _OpenFile:
    """A data file that is open for writing."""

    def __init__(self, location: Location, name: str, values: Values, schema: pa.Schema) -> None:
        self.statistics = Statistics()
        self._location, self._name, self._values = location, name, values
        self._stream: BinaryIO = location.open_output(name)
        size = PARTITIONED_ROW_GROUP_BYTES if values else ROW_GROUP_BYTES
        self._writer = parquet(compression="snappy", row_group_size=size).file_writer(
            self._stream, schema
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends rows."""
        self._writer.write(rows)
        self.statistics.add(rows)

    def close(self) -> DataFile:
        """Completes the file durably."""
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        self._location.sync(self._name)
        statistics = self.statistics
        return DataFile(self._name, size, statistics.rows, statistics.to_json(), self._values)

    def abort(self) -> None:
        """Deletes the file."""
        with suppress(Exception):
            self._writer.close()
        with suppress(Exception):
            self._stream.close()
        with suppress(Exception):
            self._location.delete(self._name)


def parquet(**options: Any) -> FileFormat[Any]:
    """Returns the format of data files."""
    format_: Any = registry.find("format", "parquet")
    found: FileFormat[Any] = format_(format_.config_type(**options))
    return found
