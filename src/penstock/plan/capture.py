"""A sink that keeps the rows it is given in the driver's memory, for looking at a plan's nodes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.sdk import BatchId, Capability, Config, Context, Failure, Receipt, Sink, Writer


class Capture(Sink[Config]):
    """Stands where `like` stood, with its capabilities and format, or below any other node.

    Rows that the format cannot encode go to the dead letters, as they would in `like`; nothing
    reaches the outside. With `most` it keeps that many rows, and `full` tells when it has them.
    """

    def __init__(
        self, context: Context, like: Sink[Any] | None = None, most: int | None = None
    ) -> None:
        super().__init__(Config(), context)
        self.most = most
        self._like = like
        self.format = like.format.offline() if like and like.format else None
        self.capabilities = (
            like.capabilities if like else frozenset({Capability.ROWS, Capability.UPSERT})
        )
        self._batches: dict[BatchId, pa.Table] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batches": {}, "_like": None}

    def accepts(self, columns: pa.Schema) -> None:
        if self._like is not None:
            self._like.accepts(columns)

    @property
    def table(self) -> pa.Table | None:
        """The rows so far, in the order of the batches; None while there were none."""
        tables = list(self._batches.values())
        return pa.concat_tables(tables).slice(0, self.most) if tables else None

    @property
    def full(self) -> bool:
        """Whether it keeps no more rows."""
        rows = sum(each.num_rows for each in self._batches.values())
        return self.most is not None and rows >= self.most

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> CaptureWriter:
        return CaptureWriter(partition, schema, self.most)

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        parts = [
            pa.ipc.open_stream(base64.b64decode(receipt["arrow"])).read_all()
            for receipt in sorted(receipts, key=lambda each: int(each["partition"]))
        ]
        if parts and not self.full:
            self._batches[batch] = pa.concat_tables(parts)


class CaptureWriter(Writer):
    """Packs a partition into its receipt."""

    def __init__(self, partition: int, schema: pa.Schema, most: int | None) -> None:
        self._partition = partition
        self._room = most
        self._buffer = pa.BufferOutputStream()
        self._stream = pa.ipc.new_stream(self._buffer, schema)

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        kept = rows.slice(0, self._room)
        if self._room is not None:
            self._room -= kept.num_rows
        self._stream.write_batch(kept)
        return ()

    def commit(self) -> Receipt:
        self._stream.close()
        packed = base64.b64encode(self._buffer.getvalue()).decode()
        return {"partition": self._partition, "arrow": packed}
