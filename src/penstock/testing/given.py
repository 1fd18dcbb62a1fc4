"""What a source delivers in a case: the rows or payloads that the case gives, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.sdk import Capability, Config, Offset, Read, ReplayableSource, Source
from penstock.sdk.kit.rows import batch_of

Batch: TypeAlias = pa.RecordBatch | pa.BinaryArray
"""Rows, or payloads for the source's format."""


class Given(ReplayableSource[Config]):
    """Stands where `like` stands. Each of `batches` is one micro-batch.

    All sources of a case have the same number of batches, so that they advance together. `end`,
    a row at the end of time, is part of the last one and closes all windows.
    """

    capabilities = frozenset({Capability.REPLAY, Capability.BOUNDED, Capability.ROWS})

    def __init__(
        self, like: Source[Any], batches: Sequence[Batch], end: pa.RecordBatch | None = None
    ) -> None:
        super().__init__(Config(), like.context)
        self.format, self.columns = like.format, like.columns
        self.metadata_columns: Mapping[str, str] = like.metadata_columns
        self.batches, self.end = batches, end
        self._metadata = pa.schema([field.with_nullable(True) for field in like.metadata()])

    def metadata(self) -> pa.Schema:
        return self._metadata

    def bounded(self) -> bool:
        return True

    def initial(self) -> Offset:
        return {"batch": 0}

    def latest(self, start: Offset) -> Offset:
        return {"batch": len(self.batches)}

    def advance(self, start: Offset, end: Offset) -> Offset:
        return {"batch": min(int(start["batch"]) + 1, int(end["batch"]))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[int]:
        last = len(self.batches) - 1 if self.end is not None else -1
        wanted = range(int(start["batch"]), int(end["batch"]))
        return [at for at in wanted if len(self.batches[at]) or at == last]

    def read(self, partition: int, read: Read) -> Iterator[pa.RecordBatch]:
        batch = self.batches[partition]
        if isinstance(batch, pa.RecordBatch):
            yield batch
        elif len(batch):
            yield self._decoded(batch, sum(map(len, self.batches[:partition])), read)
        if self.end is not None and partition == len(self.batches) - 1:
            yield self.end

    def _decoded(self, payloads: pa.BinaryArray, before: int, read: Read) -> pa.RecordBatch:
        assert self.format is not None
        assert self.columns is not None
        rows, _, bad = self.format.rows(payloads, self.columns)
        for at, text, part, error in bad:
            read.reject(text, self.context.node, before + at + 1, error, part)
        nothing = batch_of([{}] * rows.num_rows, self._metadata)
        for name in read.metadata:
            rows = rows.append_column(f"metadata:{name}", nothing.column(name))
        return rows
