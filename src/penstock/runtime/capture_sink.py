"""Captures: sinks to the driver's memory. Workers import this module, so that it needs no plan."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.sdk import BatchId, Capability, Config, Context, Failure, Receipt, Sink, Writer


class Capture(Sink[Config]):
    """A sink to the driver's memory.

    A capture of a sink has the capabilities, the format, the mode and the primary key of
    `original`. Rows that the format cannot encode become dead letters, as in `original`. No
    external system is reached. `max_rows` limits the captured rows. Operations stay in their
    column.
    """

    operation: str | None = None

    def __init__(
        self, context: Context, original: Sink[Any] | None = None, max_rows: int | None = None
    ) -> None:
        super().__init__(Config(), context)
        self.max_rows = max_rows
        self._original = original
        self.capabilities = frozenset({Capability.ROWS, Capability.UPSERT})
        if original is not None:
            self.format = original.format.offline() if original.format else None
            self.capabilities = original.capabilities
            self.mode, self.primary_key = original.mode, original.primary_key
        self._batches: dict[BatchId, pa.Table] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batches": {}, "_original": None}

    def check_schema(self, columns: pa.Schema) -> None:
        if self._original is not None:
            self._original.check_schema(columns)

    @property
    def table(self) -> pa.Table | None:
        """The rows in the order of the batches; None before the first rows."""
        tables = list(self._batches.values())
        return pa.concat_tables(tables).slice(0, self.max_rows) if tables else None

    @property
    def count(self) -> int:
        """The number of captured rows."""
        rows: int = sum(table.num_rows for table in list(self._batches.values()))
        return rows if self.max_rows is None else min(rows, self.max_rows)

    @property
    def full(self) -> bool:
        """Whether `max_rows` is reached."""
        return self.max_rows is not None and self.count >= self.max_rows

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> CaptureWriter:
        return CaptureWriter(partition, schema, self.max_rows, self.operation)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        parts = [
            pa.ipc.open_stream(base64.b64decode(receipt["arrow"])).read_all()
            for receipt in sorted(receipts, key=lambda receipt: int(receipt["partition"]))
        ]
        if parts and not self.full:
            self._batches[batch] = pa.concat_tables(parts)


class CaptureWriter(Writer):
    """A writer that packs the rows of a partition into its receipt."""

    def __init__(
        self, partition: int, schema: pa.Schema, max_rows: int | None, operation: str | None
    ) -> None:
        self._partition = partition
        self._remaining = max_rows
        self._operation = operation
        self._buffer = pa.BufferOutputStream()
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._schema = schema

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        if operations is not None and self._operation is not None:
            rows = rows.append_column(self._operation, operations)
        head = rows.slice(0, self._remaining)
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._buffer, rows.schema)
        if self._remaining is not None:
            self._remaining -= head.num_rows
        self._stream.write_batch(head)
        return ()

    def commit(self) -> Receipt:
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._buffer, self._schema)
        self._stream.close()
        packed = base64.b64encode(self._buffer.getvalue()).decode()
        return {"partition": self._partition, "arrow": packed}
