"""Reading in a task: rows of the files of versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.log import FileOfVersion, data_gone
from penstock.connectors.delta.partition_values import from_text
from penstock.connectors.delta.writer import parquet
from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import FileFormat, Operation, Read
from penstock.sdk.columns.names import find_name
from penstock.sdk.record import PAYLOAD

METADATA = pa.schema(
    [
        ("path", pa.string()),
        ("commit_version", pa.int64()),
        ("commit_timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
_CHANGE_TYPE = pa.field("_change_type", pa.string())
_BEFORE = {"delete": Operation.DELETE, "update_preimage": Operation.UPDATE_BEFORE}
_AFTER = {"insert": Operation.INSERT, "update_postimage": Operation.UPDATE}
_OPERATIONS = {"insert": Operation.INSERT, "delete": Operation.DELETE}
_ROWS = 65_536


@dataclass(frozen=True)
class Reader:
    """A reader of rows of `columns`. `operation` is the operation column, or None."""

    location: Location
    columns: pa.Schema
    operation: str | None
    skips_gaps: bool

    def rows(self, file: FileOfVersion, read: Read) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a file with the requested metadata."""
        origin = f"{self.location.path}/{file.name}"
        if file.kind == "gone":
            message = f"version {file.version} was removed before being read"
            read.reject(None, origin, 0, DecodeError(message, code="data-gone"))
            return
        changes = {"before": _BEFORE, "after": _AFTER}.get(file.kind)
        for rows, positions in self._content(file, origin, changes is not None, read):
            if file.kept is not None:
                mask = _kept(file.kept, positions)
                rows, positions = rows.filter(mask), positions.filter(mask)
            operations: pa.Array | Operation | None = _OPERATIONS.get(file.kind)
            if changes is not None:
                types = rows.column(_CHANGE_TYPE.name)
                index = pc.index_in(types, value_set=pa.array([*changes], pa.string()))
                kept = pc.is_valid(index)
                rows, positions = rows.filter(kept), positions.filter(kept)
                texts = pa.array([str(each) for each in changes.values()], pa.string())
                operations = texts.take(index.filter(kept))
            if rows.num_rows:
                yield self._complete(rows, positions, operations, file, origin, read)

    def _content(
        self, file: FileOfVersion, origin: str, has_changes: bool, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        stored = [
            field
            for field in self.columns
            if field.name != self.operation and self._partition(field, file) is None
        ]
        schema = pa.schema([*stored, _CHANGE_TYPE] if has_changes else stored)
        needed = read.columns
        if needed is not None and has_changes:
            needed = needed | {_CHANGE_TYPE.name}
        conjuncts = () if has_changes else read.conjuncts
        within = Read(needed, conjuncts, bad=read.bad, isolated=read.isolated)
        with convert_errors("open", origin):
            content = self._open(file, origin, read)
        if content is None:
            return
        format_: FileFormat[Any] = parquet()
        try:
            with convert_errors("read", origin), content:
                yield from format_.read_file(content, schema, origin, within)
        except Permanent as error:
            if error.code != "wrong-columns" or file.rows is None:
                raise
            yield from _without_columns(schema, file.rows)
        read.skipped += within.skipped

    def _open(self, file: FileOfVersion, origin: str, read: Read) -> BinaryIO | None:
        """Opens a file. One that was removed is rejected as a record, or raises Permanent."""
        try:
            return self.location.open_input(file.name)
        except FileNotFoundError as error:
            lost = data_gone(f"{origin} of version {file.version} was removed before being read")
            if not self.skips_gaps:
                raise lost from error
            read.reject(None, origin, 0, DecodeError(lost.message, code=lost.code))
            return None

    def _partition(self, field: pa.Field, file: FileOfVersion) -> str | None:
        """Returns the name of the partition value of a column; None for other columns."""
        names = [*file.values]
        index = find_name(field.name, names)
        return None if index < 0 else names[index]

    def _complete(
        self, rows: pa.RecordBatch, positions: pa.Int64Array, operations: Any,
        file: FileOfVersion, origin: str, read: Read,
    ) -> pa.RecordBatch:  # fmt: skip
        count = rows.num_rows
        columns = []
        for field in self.columns:
            if field.name == self.operation:
                single = pa.scalar(str(operations), pa.string())
                many = isinstance(operations, pa.Array)
                columns.append(operations if many else pa.repeat(single, count))
            elif (name := self._partition(field, file)) is not None:
                columns.append(pa.repeat(from_text(file.values[name], field.type), count))
            else:
                columns.append(rows.column(field.name))
        metadata: Mapping[str, Any] = {
            "path": origin,
            "commit_version": file.version,
            "commit_timestamp": None if file.time is None else file.time * 1000,
            PAYLOAD.names[1]: origin,
        }
        for name in read.metadata:
            if name == "position":
                columns.append(positions)
            else:
                type_ = METADATA.field(name).type if name in METADATA.names else pa.string()
                columns.append(pa.repeat(pa.scalar(metadata[name], type_), count))
        return pa.record_batch(columns, names=[*self.columns.names, *read.metadata])


def _kept(kept: bytes, positions: pa.Int64Array) -> pa.BooleanArray:
    """Returns for each position, from 1, whether its row is not deleted."""
    flags = np.frombuffer(kept, np.uint8)
    indexes = positions.to_numpy() - 1
    mask = np.ones(len(indexes), bool)
    covered = indexes < len(flags)
    mask[covered] = flags[indexes[covered]] == 1
    return pa.array(mask)


def _without_columns(
    schema: pa.Schema, count: int
) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
    """Yields the rows of a file that is older than all of the columns."""
    for start in range(0, count, _ROWS):
        rows = range(start + 1, min(start + _ROWS, count) + 1)
        columns = [pa.nulls(len(rows), field.type) for field in schema]
        yield pa.record_batch(columns, schema=schema), pa.array(rows, pa.int64())
