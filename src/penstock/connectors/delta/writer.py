"""Writing in a task: data files of one partition of a batch, which the driver commits."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.partition_values import Values, directory, group
from penstock.connectors.delta.statistics import Statistics
from penstock.connectors.delta.target import Target
from penstock.sdk import BatchId, Failure, Receipt, Rejected
from penstock.sdk.lakes.open_files import OpenFile
from penstock.sdk.lakes.writer import LakeWriter, missing_values


@dataclass(frozen=True)
class DataFile:
    """A complete file. `values` are those of its partition."""

    name: str
    size: int
    rows: int
    statistics: str
    values: Values = field(default_factory=dict)


class DeltaWriter(LakeWriter[DataFile]):
    """A writer of one partition of a batch."""

    def __init__(
        self, location: Location, target: Target, batch: BatchId, partition: int,
        schema: pa.Schema, key: Sequence[str],
    ) -> None:  # fmt: skip
        super().__init__([field.name for field in target.fields(key)])
        self._columns = pa.schema(target.fields(schema.names))
        self._partition_by = () if key else target.partition_by
        self._required = [each.name for each in self._columns if not each.nullable]
        self._texts = [
            name
            for name in target.partition_by
            if name in self._columns.names and pa.types.is_string(self._columns.field(name).type)
        ]
        self._location = location
        self._name = f"part-{batch.number:08d}-{partition:05d}"

    def errors(self) -> AbstractContextManager[None]:
        return convert_errors("write to", self._location.path)

    def convert(
        self, rows: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, pa.Int64Array | None, list[Failure]]:
        columns = zip(rows.columns, self._columns, strict=True)
        converted = [column.cast(each.type) for column, each in columns]
        return pa.record_batch(converted, names=self._columns.names), None, []

    def unstorable(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.BooleanArray, Rejected]]:
        yield from missing_values(rows, self._required)
        for name in self._texts:
            error = Rejected(f'column "{name}": {_EMPTY}', code="rejected")
            yield pc.equal(rows.column(name), ""), error

    def parts(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, OpenFile[DataFile]]]:
        for values, indexes in group(rows, self._partition_by):
            part = rows.drop_columns([*values])
            if indexes is not None:
                part = part.take(pa.array(indexes))
            if part.num_rows:
                yield part, self._file(values, part.schema)

    def _file(self, values: Values, schema: pa.Schema) -> OpenFile[DataFile]:
        name = f"{directory(values)}{self._name}-{uuid.uuid4().hex}.snappy.parquet"
        create = partial(_OpenDataFile, self._location, name, values, schema)
        return self.files.get(repr(values), create)

    def commit(self) -> Receipt:
        with convert_errors("write to", self._location.path):
            return {"files": [asdict(file) for file in self.files.close()]}


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
