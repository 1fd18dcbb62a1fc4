"""Source of the rows or payloads that a test case gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.sdk import Capability, Config, Offset, Read, ReplayableSource, Source
from penstock.sdk.columns.rows import batch_of

Batch: TypeAlias = pa.RecordBatch | pa.BinaryArray
"""Rows, or payloads in the format of the source."""


class GivenSource(ReplayableSource[Config]):
    """A bounded source in place of `original`, with one micro-batch for each of `batches`.

    All sources of a case have the same number of batches, so that a micro-batch of a query reads
    one batch of each source. `sentinel` is part of the last batch and closes all windows.
    """

    capabilities = frozenset({Capability.REPLAY, Capability.BOUNDED, Capability.ROWS})

    def __init__(
        self,
        original: Source[Any],
        batches: Sequence[Batch],
        sentinel: pa.RecordBatch | None = None,
    ) -> None:
        super().__init__(Config(), original.context)
        self.format, self.columns = original.format, original.columns
        self.metadata_columns: Mapping[str, str] = original.metadata_columns
        self.batches, self.sentinel = batches, sentinel
        fields = original.metadata_schema()
        self._metadata = pa.schema([field.with_nullable(True) for field in fields])

    def metadata_schema(self) -> pa.Schema:
        return self._metadata

    def is_bounded(self) -> bool:
        return True

    def initial_offset(self) -> Offset:
        return {"batch": 0}

    def latest_offset(self, start: Offset) -> Offset:
        return {"batch": len(self.batches)}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        return {"batch": min(int(start["batch"]) + 1, int(end["batch"]))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[int]:
        last = len(self.batches) - 1 if self.sentinel is not None else -1
        indexes = range(int(start["batch"]), int(end["batch"]))
        return [index for index in indexes if len(self.batches[index]) or index == last]

    def read(self, partition: int, read: Read) -> Iterator[pa.RecordBatch]:
        batch = self.batches[partition]
        if isinstance(batch, pa.RecordBatch):
            yield batch
        elif len(batch):
            yield self._decode(batch, sum(map(len, self.batches[:partition])), read)
        if self.sentinel is not None and partition == len(self.batches) - 1:
            yield self.sentinel

    def _decode(self, payloads: pa.BinaryArray, start: int, read: Read) -> pa.RecordBatch:
        assert self.format is not None
        assert self.columns is not None
        rows, _, failures = self.format.rows(payloads, self.columns)
        for index, payload, part, error in failures:
            read.reject(payload, self.context.node, start + index + 1, error, part)
        nulls = batch_of([{}] * rows.num_rows, self._metadata)
        for name in read.metadata:
            rows = rows.append_column(f"metadata:{name}", nulls.column(name))
        return rows
