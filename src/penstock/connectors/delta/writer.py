"""Writing in a task: data files of one partition of a batch, which the driver commits."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.partition_values import Values, directory, group
from penstock.connectors.delta.statistics import Statistics
from penstock.connectors.delta.target import Target
from penstock.sdk import BatchId, Failure, Operation, Receipt, Rejected, Writer
from penstock.sdk.keys import split_null_keys
from penstock.sdk.lakes.open_files import OpenFile, OpenFiles

DELETED = "_penstock_deleted"
"""The column of staged rows that tells deletes from upserts."""


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
        self._files: OpenFiles[DataFile] = OpenFiles()

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

    def _file(self, values: Values, schema: pa.Schema) -> OpenFile[DataFile]:
        name = f"{directory(values)}{self._name}-{uuid.uuid4().hex}.snappy.parquet"
        create = partial(_OpenDataFile, self._location, name, values, schema)
        return self._files.get(repr(values), create)

    def commit(self) -> Receipt:
        with convert_errors("write to", self._location.path):
            return {"files": [asdict(file) for file in self._files.close()]}

    def abort(self) -> None:
        self._files.abort()


_EMPTY = "a partition column cannot have an empty text, which is read as null"


class _OpenDataFile(OpenFile[DataFile]):
    """A data file that is open for writing."""

    def __init__(self, location: Location, name: str, values: Values, schema: pa.Schema) -> None:
        stream = location.open_output(name)
        super().__init__(stream, schema, "snappy", is_partitioned=bool(values))
        self._statistics = Statistics()
        self._location, self._name, self._values = location, name, values

    def write(self, rows: pa.RecordBatch) -> None:
        super().write(rows)
        self._statistics.add(rows)

    def complete(self, size: int) -> DataFile:
        self._location.sync(self._name)
        return DataFile(self._name, size, self.rows, self._statistics.to_json(), self._values)

    def delete(self) -> None:
        self._location.delete(self._name)
