"""Reading in a task: rows of the files of versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.log import DeltaFile
from penstock.connectors.delta.partition_values import from_text
from penstock.sdk import Operation, Read
from penstock.sdk.columns.names import find_name
from penstock.sdk.lakes.reader import FileReader, read_parquet

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


@dataclass(frozen=True)
class Reader(FileReader[DeltaFile]):
    """A reader of the files of a table."""

    location: Location

    def origin(self, file: DeltaFile) -> str:
        return f"{self.location.path}/{file.name}"

    def errors(self, operation: str, origin: str) -> AbstractContextManager[None]:
        return convert_errors(operation, origin)

    def open_input(self, file: DeltaFile) -> BinaryIO:
        return self.location.open_input(file.name)

    def constant(self, field: pa.Field, file: DeltaFile) -> pa.Scalar | None:
        names = [*file.values]
        index = find_name(field.name, names)
        return None if index < 0 else from_text(file.values[names[index]], field.type)

    def metadata(self, file: DeltaFile) -> tuple[pa.Schema, Mapping[str, Any]]:
        time = None if file.time is None else file.time * 1000
        return METADATA, {
            "path": self.origin(file), "commit_version": file.version, "commit_timestamp": time,
        }  # fmt: skip

    def content(
        self, file: DeltaFile, content: BinaryIO, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array, pa.Array | None]]:
        changes = {"before": _BEFORE, "after": _AFTER}.get(file.kind)
        for rows, positions in self._stored_rows(file, content, changes is not None, read):
            if file.kept is not None:
                mask = _kept(file.kept, positions)
                rows, positions = rows.filter(mask), positions.filter(mask)
            operations = None
            if changes is not None:
                types = rows.column(_CHANGE_TYPE.name)
                index = pc.index_in(types, value_set=pa.array([*changes], pa.string()))
                kept = pc.is_valid(index)
                rows, positions = rows.filter(kept), positions.filter(kept)
                texts = pa.array([str(each) for each in changes.values()], pa.string())
                operations = texts.take(index.filter(kept))
            yield rows, positions, operations

    def _stored_rows(
        self, file: DeltaFile, content: BinaryIO, has_changes: bool, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        stored = self.stored(file)
        schema = pa.schema([*stored, _CHANGE_TYPE] if has_changes else stored)
        needed = read.columns
        if needed is not None and has_changes:
            needed = needed | {_CHANGE_TYPE.name}
        conjuncts = () if has_changes else read.conjuncts
        within = Read(needed, conjuncts, bad=read.bad, isolated=read.isolated)
        yield from read_parquet(content, schema, self.origin(file), within, file.rows, {})
        read.skipped += within.skipped


def _kept(kept: bytes, positions: pa.Int64Array) -> pa.BooleanArray:
    """Returns for each position, from 1, whether its row is not deleted."""
    flags = np.frombuffer(kept, np.uint8)
    indexes = positions.to_numpy() - 1
    mask = np.ones(len(indexes), bool)
    covered = indexes < len(flags)
    mask[covered] = flags[indexes[covered]] == 1
    return pa.array(mask)
