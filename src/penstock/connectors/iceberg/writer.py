"""Writing of data files: of one partition of a batch, or of rows that the driver rewrites."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.connectors.iceberg.client import open_output, sync_location
from penstock.connectors.iceberg.data_files import data_file, to_json
from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.target import Target
from penstock.connectors.iceberg.types import file_field
from penstock.connectors.iceberg.values import to_file_values
from penstock.sdk import Failure, Receipt, Rejected
from penstock.sdk.columns.conform import conform_each
from penstock.sdk.lakes.open_files import OpenFile
from penstock.sdk.lakes.writer import LakeWriter, missing_values

_COMPRESSION = {"snappy": "snappy", "gzip": "gzip", "lz4": "lz4", "uncompressed": "none"}


class IcebergWriter(LakeWriter[Any]):
    """A writer of data files with some columns of a table."""

    def __init__(self, target: Target, name: str, columns: Sequence[str], key: Sequence[str]):
        super().__init__([field.name for field in target.fields(key)])
        self._target = target
        self._name = name
        self._fields = target.fields(columns)
        self._columns = pa.schema([file_field(field) for field in self._fields])
        self._required = [field.name for field in self._fields if field.required]

    def errors(self) -> AbstractContextManager[None]:
        return convert_errors("write to", self._target.name)

    def convert(
        self, rows: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, pa.Int64Array | None, list[Failure]]:
        found = conform_each(rows, self._columns, to_file_values)
        failures = [
            Failure(index, Rejected(error.message, code=error.code))
            for index, error in found.failures
        ]
        return found.rows, found.index, failures

    def unstorable(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.BooleanArray, Rejected]]:
        yield from missing_values(rows, self._required)

    def parts(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, OpenFile[Any]]]:
        if self.key:
            create = partial(StagedFile, self._target, f"{self._name}-staged", rows.schema)
            yield rows, self.files.get("", create)
            return
        partitioning = self._target.partitioning
        for values, indexes in partitioning.groups(rows):
            part = rows if indexes is None else rows.take(pa.array(indexes))
            if part.num_rows:
                yield part, self.files.get(repr(values), partial(self._create, values))

    def _create(self, values: Sequence[Any]) -> OpenFile[Any]:
        return OpenDataFile(self._target, self._name, self._fields, values)

    def commit(self) -> Receipt:
        with self.errors():
            files = self.files.close()
            if self.key:
                return {"staged": files}
            spec, schema = self._target.partitioning.spec, self._target.schema
            return {"spec": spec.spec_id, "files": [to_json(file, spec, schema) for file in files]}

    def data_files(self) -> list[Any]:
        """Completes the files, for a commit in the same process."""
        with self.errors():
            return self.files.close()


class _TableFile(OpenFile[Any]):
    """A file below the directory of a table that is open for writing."""

    def __init__(
        self, target: Target, name: str, schema: pa.Schema, compression: str, *,
        is_partitioned: bool = False,
    ) -> None:  # fmt: skip
        self._table = target.table
        self.location = target.table.location_provider().new_data_location(
            f"{name}-{uuid.uuid4().hex}.parquet"
        )
        stream = open_output(self._table.io, self.location)
        super().__init__(stream, schema, compression, is_partitioned=is_partitioned)

    def delete(self) -> None:
        self._table.io.delete(self.location)

    def sync(self) -> None:
        """Writes the file to disk."""
        sync_location(self.location, self._table.location())


class StagedFile(_TableFile):
    """A file of rows that the driver merges into a table. Its facts are its location."""

    def __init__(self, target: Target, name: str, schema: pa.Schema) -> None:
        plain = pa.schema([field.remove_metadata() for field in schema])
        super().__init__(target, name, plain, "snappy")

    def complete(self, size: int) -> str:
        self.sync()
        return str(self.location)


class OpenDataFile(_TableFile):
    """A data file of a table. Columns are found by their IDs, so names are compatible with Avro."""

    def __init__(
        self, target: Target, name: str, fields: Sequence[Any], values: Sequence[Any]
    ) -> None:
        names = [field.field_id for field in fields if str(field.field_type) != "unknown"]
        self._target, self._values = target, values
        stored = [target.file_schema.find_field(number) for number in names]
        self._schema = pa.schema([file_field(field) for field in stored])
        self._indexes = [index for index, field in enumerate(fields) if field.field_id in names]
        directory = f"{target.partitioning.directory(values)}/" if values else ""
        codec = target.table.properties.get("write.parquet.compression-codec", "zstd")
        super().__init__(
            target, f"{directory}{name}", self._schema, _COMPRESSION.get(codec, "zstd"),
            is_partitioned=bool(values),
        )  # fmt: skip

    def write(self, rows: pa.RecordBatch) -> None:
        columns = [
            _renamed(rows.column(index), field.type)
            for index, field in zip(self._indexes, self._schema, strict=True)
        ]
        super().write(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def complete(self, size: int) -> Any:
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )

        self.sync()
        schema, table = self._target.file_schema, self._table
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=self.metadata,
            stats_columns=compute_statistics_plan(schema, table.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(schema),
        ).to_serialized_dict()
        return data_file(self.location, size, self._values, table.spec(), **statistics)


def _renamed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns a column whose nested fields have other names."""
    return column if column.type == type_ else column.view(type_)


def delete_files(io: Any, locations: Sequence[str]) -> None:
    """Deletes files, as far as possible."""
    for location in locations:
        with suppress(Exception):
            io.delete(location)
