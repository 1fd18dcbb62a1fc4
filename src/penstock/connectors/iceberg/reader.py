"""Reading in a task: rows of the data files of snapshots, whose columns are found by their IDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from penstock.connectors.iceberg.client import open_input
from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.snapshots import IcebergFile, file_of
from penstock.connectors.iceberg.types import file_field
from penstock.connectors.iceberg.values import to_file_values
from penstock.sdk import Read
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.names import find_name
from penstock.sdk.lakes.reader import FileReader, read_parquet

METADATA = pa.schema(
    [
        ("path", pa.string()),
        ("snapshot_id", pa.int64()),
        ("sequence_number", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class Reader(FileReader[IcebergFile]):
    """A reader of the files of a table."""

    table: Any
    options: Mapping[str, Any]

    def origin(self, file: IcebergFile) -> str:
        return file.name

    def errors(self, operation: str, origin: str) -> AbstractContextManager[None]:
        return convert_errors(operation, origin)

    def open_input(self, file: IcebergFile) -> BinaryIO:
        return open_input(self.table.io, file.name)

    def constant(self, field: pa.Field, file: IcebergFile) -> pa.Scalar | None:
        return None

    def metadata(self, file: IcebergFile) -> tuple[pa.Schema, Mapping[str, Any]]:
        return METADATA, {
            "path": file.name, "snapshot_id": file.snapshot, "sequence_number": file.version,
            "committed_at": None if file.time is None else file.time * 1000,
        }  # fmt: skip

    def content(
        self, file: IcebergFile, content: BinaryIO, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array, pa.Array | None]]:
        columns = self.stored(file)
        found = self._find(file, columns, parquet.read_schema(content))
        content.seek(0)
        stored = {name: field for name, field in found.items() if field is not None}
        schema = pa.schema(list(stored.values()))
        needed = read.columns and {stored[name].name for name in read.columns & stored.keys()}
        within = Read(
            None if read.columns is None else frozenset(needed or ()), bad=read.bad,
            isolated=read.isolated,
        )  # fmt: skip
        deleted = self._deleted_positions(file)
        for rows, positions in self.stored_rows(file, content, schema, within):
            if deleted is not None:
                mask = pa.array(~np.isin(positions.to_numpy() - 1, deleted))
                rows, positions = rows.filter(mask), positions.filter(mask)
            yield self._named(rows, stored, columns, file), positions, None

    def stored_rows(
        self, file: IcebergFile, content: BinaryIO, schema: pa.Schema, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        """Yields the rows of a file, with its names, and their positions from 1."""
        yield from read_parquet(content, schema, self.origin(file), read, file.rows, self.options)

    def _named(
        self, rows: pa.RecordBatch, stored: Mapping[str, pa.Field], columns: Sequence[pa.Field],
        file: IcebergFile,
    ) -> pa.RecordBatch:  # fmt: skip
        """Returns rows with the names of the table, and the columns that the file lacks."""
        arrays = []
        for field in columns:
            if field.name in stored:
                column = rows.column(stored[field.name].name)
                arrays.append(column if column.type == field.type else column.view(field.type))
            else:
                value = self._missing_value(field, file)
                single = pa.nulls(1, field.type) if value is None else pa.array([value], field.type)
                arrays.append(single.take(pa.array(np.zeros(rows.num_rows, np.int64))))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(columns))

    def _missing_value(self, field: pa.Field, file: IcebergFile) -> Any:
        """Returns the value of a column in a file that lacks it: of its partition, or a default."""
        source = self._source(file, field.name)
        if source is None:
            return None
        value = file.constants.get(source.field_id)
        if value is None:
            return source.initial_default
        return _external(value, field.type, str(source.field_type))

    def _source(self, file: IcebergFile, name: str) -> Any:
        """Returns the column of the table, of the schema of the source first; None for none."""
        metadata = self.table.metadata
        for schema in (self.table.schemas().get(file.schema), metadata.schema()):
            fields = schema.fields if schema is not None else ()
            index = find_name(name, [field.name for field in fields])
            if index >= 0:
                return fields[index]
        return None

    def _find(
        self, file: IcebergFile, columns: Sequence[pa.Field], physical: pa.Schema
    ) -> Mapping[str, pa.Field | None]:
        """Returns the columns of a file for columns of rows, by the names of the latter."""
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        metadata = self.table.metadata
        stored = pyarrow_to_schema(physical, metadata.name_mapping(), format_version=3)
        by_id = {field.field_id: field for field in stored.fields}
        found: dict[str, pa.Field | None] = {}
        for column in columns:
            source = self._source(file, column.name)
            own = None if source is None else by_id.get(source.field_id)
            found[column.name] = own and pa.field(
                own.name, _stored_type(column.type, source.field_type, own.field_type)
            )
        return found

    def _deleted_positions(self, file: IcebergFile) -> np.ndarray[Any, Any] | None:
        """Returns the positions, from 0, of rows that delete files have removed."""
        from pyiceberg.io.pyarrow import _read_deletes

        positions = [
            np.asarray(_read_deletes(self.table.io, each).get(file.name, pa.chunked_array([[]])))
            for each in file.deletes
        ]
        return np.concatenate(positions) if positions else None


class ExactReader(Reader):
    """A reader of rows as they are in files, to write them again."""

    @classmethod
    def of(cls, table: Any) -> ExactReader:
        """Returns a reader of all columns of a table."""
        columns = pa.schema([file_field(field) for field in table.schema().fields])
        return cls(columns, None, False, table, {})

    def scan(self, tasks: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of scans, without those that delete files have removed."""
        table = self.table
        for task in tasks:
            file = file_of(
                task.file, table, table.current_snapshot(), table.schema().schema_id,
                [*task.delete_files],
            )  # fmt: skip
            yield from self.rows(file, Read())

    def stored_rows(
        self, file: IcebergFile, content: BinaryIO, schema: pa.Schema, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        count = 0
        for rows in parquet.ParquetFile(content).iter_batches(columns=schema.names):
            positions = pa.array(range(count + 1, count + rows.num_rows + 1), pa.int64())
            yield conform(rows, schema, to_file_values), positions
            count += rows.num_rows


def _stored_type(type_: pa.DataType, source: Any, stored: Any) -> pa.DataType:
    """Returns the type of a column of rows with the names that its fields have in a file."""
    if pa.types.is_struct(type_) and stored.is_struct:
        by_id = {field.field_id: field for field in stored.fields}
        names = [field.name for field in source.fields]
        fields = []
        for each in type_:
            index = find_name(each.name, names)
            origin = source.fields[index] if index >= 0 else None
            own = None if origin is None else by_id.get(origin.field_id)
            if origin is None or own is None:
                fields.append(pa.field(f"\0missing {each.name}", each.type))
            else:
                inner = _stored_type(each.type, origin.field_type, own.field_type)
                fields.append(pa.field(own.name, inner))
        return pa.struct(fields)
    if pa.types.is_list(type_) and hasattr(stored, "element_type"):
        return pa.list_(_stored_type(type_.value_type, source.element_type, stored.element_type))
    if pa.types.is_map(type_) and hasattr(stored, "key_type"):
        return pa.map_(
            _stored_type(type_.key_type, source.key_type, stored.key_type),
            _stored_type(type_.item_type, source.value_type, stored.value_type),
        )
    return type_


def _external(value: Any, type_: pa.DataType, source: str) -> Any:
    """Returns the value of a partition as a value of rows."""
    if source == "uuid" and isinstance(value, bytes):
        import uuid

        return str(uuid.UUID(bytes=value))
    if source.endswith("_ns"):
        value = value // 1000
    if source == "time":
        return pa.scalar(value, pa.int64()).cast(pa.time64("us")).cast(pa.string()).as_py()
    if pa.types.is_date32(type_):
        return pa.scalar(value, pa.int32()).cast(type_).as_py()
    if pa.types.is_timestamp(type_):
        return pa.scalar(value, pa.int64()).cast(type_).as_py()
    return str(value) if source == "uuid" else value
