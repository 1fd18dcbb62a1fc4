"""A phase of a hybrid source: the rows of another source in the columns of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk import PAYLOAD, Capability, Operation, Read, ReplayableSource
from penstock.sdk.decoding import decode_payloads
from penstock.sdk.phases import PhasedSource
from penstock.sdk.record import BadRecord

ORIGIN = "origin"
PLACES = [PAYLOAD.field(name) for name in (ORIGIN, "position")]
"""The metadata with which a record is found again."""
_PLACES = frozenset(field.name for field in PLACES)


def has_places(source: ReplayableSource[Any]) -> bool:
    """Returns whether a source yields the origin and the position of each record."""
    return source.locates_rows or Capability.BYTES in source.capabilities


class Phase:
    """The rows of the source of a phase, in the columns of its node.

    Of a node with an operation column, rows of a source without it are inserts. Origins begin with
    the `number` of the phase, counted from 1.
    """

    def __init__(self, node: PhasedSource[Any], number: int) -> None:
        assert node.columns is not None
        self.source = node.planned(node.phases[number - 1])
        self._number, self._columns = number, node.columns
        adds = node.adds_operations() and not self.source.adds_operations()
        self._operation = node.operation_column if adds else None

    def rows(self, partition: Any, read: Read, metadata: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition, as `ReplayableSource.read` for a source of rows.

        `metadata` has the types of all metadata. Metadata that the source lacks are null.
        """
        decodes = Capability.BYTES in self.source.capabilities
        request = self._request(read, decodes)
        for batch in self.source.read(partition, request):
            split = self._decoded if decodes else self._split
            rows, known = split(batch, request, read)
            self._move_bad_records(request, read)
            if rows.num_rows:
                yield self._complete(rows, known, read, metadata)
        self._move_bad_records(request, read)
        read.skipped += request.skipped

    def record(
        self, payload: bytes, origin: str, position: int, header: bytes | None
    ) -> pa.RecordBatch:
        """Decodes the payload of a dead letter again, as `Source.decode`."""
        origin = self.without_number(origin)
        rows = (
            self.source.decode(payload, origin, position)
            if header is None
            else self.source.decode_with_header(payload, origin, position, header)
        )
        return self._complete(rows, {}, Read(), pa.schema([]))

    def without_number(self, origin: str) -> str:
        """Returns an origin as the source knows it."""
        return origin.removeprefix(f"{self._number}:")

    def _request(self, read: Read, decodes: bool) -> Read:
        assert self.source.columns is not None
        places = _PLACES if has_places(self.source) else frozenset()
        available = {*self.source.metadata_schema().names, *places}
        names = [name for name in read.metadata if name in available]
        if decodes:
            return Read(metadata=tuple(name for name in names if name not in _PLACES))
        known = set(self.source.columns.names)
        return Read(
            None if read.columns is None else read.columns & known,
            tuple(each for each in read.conjuncts if each.column in known),
            tuple(names),
            isolated=read.isolated,
        )

    def _decoded(
        self, batch: pa.RecordBatch, request: Read, read: Read
    ) -> tuple[pa.RecordBatch, dict[str, pa.Array]]:
        rows, index, failures = decode_payloads(self.source, batch, read.isolated)
        for number, text, part, error in failures:
            origin, position = batch.column(ORIGIN)[number], batch.column("position")[number]
            record = BadRecord(text, origin.as_py(), position.as_py(), error, part)
            read.bad.append(self._with_number(record))
        names = [*_PLACES, *request.metadata]
        known = {name: batch.column(name) for name in names}
        if index is not None:
            known = {name: column.take(index) for name, column in known.items()}
        return rows, known

    def _split(
        self, batch: pa.RecordBatch, request: Read, read: Read
    ) -> tuple[pa.RecordBatch, dict[str, pa.Array]]:
        """Returns the columns of a batch of rows, and its metadata by name."""
        count = batch.num_columns - len(request.metadata)
        columns = batch.columns
        rows = batch.select(range(count))
        return rows, dict(zip(request.metadata, columns[count:], strict=True))

    def _complete(
        self,
        rows: pa.RecordBatch,
        known: Mapping[str, pa.Array],
        read: Read,
        metadata: pa.Schema,
    ) -> pa.RecordBatch:
        """Returns the rows with all columns of the node, then the metadata of the read."""
        count = rows.num_rows
        arrays = list(rows.columns)
        if self._operation is not None:
            insert = pa.scalar(Operation.INSERT.value, pa.string())
            arrays.insert(self._columns.get_field_index(self._operation), pa.repeat(insert, count))
        for name in read.metadata:
            column = known.get(name)
            if column is None:
                column = pa.nulls(count, metadata.field(name).type)
            elif name == ORIGIN:
                column = pc.binary_join_element_wise(f"{self._number}", column, ":")
            arrays.append(column)
        return pa.RecordBatch.from_arrays(arrays, names=[*self._columns.names, *read.metadata])

    def _move_bad_records(self, request: Read, read: Read) -> None:
        read.bad += map(self._with_number, request.bad)
        request.bad.clear()

    def _with_number(self, record: BadRecord) -> BadRecord:
        return replace(record, origin=f"{self._number}:{record.origin}")
