"""Rows written into the pipeline file, and rows kept in the process: for tests and first steps."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.core.errors import PlanError, RecordError
from penstock.sdk import (
    BatchId,
    Capability,
    Config,
    Failure,
    Offset,
    Read,
    Receipt,
    ReplayableSource,
    Sink,
    Writer,
    isolate,
)
from penstock.sdk.kit.rows import batch_of, infer_rows

tables: dict[str, pa.Table] = {}
"""What memory sinks of this process hold, by name."""

_held: dict[str, dict[BatchId, pa.Table]] = {}


def clear() -> None:
    """Forgets all tables."""
    tables.clear()
    _held.clear()


class MemorySourceConfig(Config):
    rows: list[dict[str, Any]] | None = None
    """The rows, each a map of column to value. Columns that a row leaves out are null."""
    payloads: list[str] | None = None
    """Encoded records instead of rows, decoded by `format`."""
    batches: int = Field(default=1, ge=1)
    """Into how many batches the rows are divided."""
    partitions: int = Field(default=1, ge=1)
    """Into how many partitions a batch is divided."""

    @model_validator(mode="after")
    def _one_of(self) -> MemorySourceConfig:
        if (self.rows is None) == (self.payloads is None):
            raise ValueError("give either rows or payloads")
        return self


class MemorySource(ReplayableSource[MemorySourceConfig]):
    """Delivers the rows that the pipeline file lists.

    Rows are read again as often as asked.

    ```yaml
    type: memory
    rows:
      - {user: ann, amount: 3.5}
      - {user: bob, amount: 4}
    ```
    """

    parallelism = "an equal share of a batch"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.ORDERED,
            Capability.ROWS,
        }
    )

    def schema(self) -> pa.Schema | None:
        return infer_rows(self.config.rows) if self.config.rows else None

    def infer(self) -> pa.Schema | None:
        if self.config.payloads is None or self.format is None:
            return self.schema()
        texts = self.format.records(_binary(self.config.payloads)).texts
        return self.format.declared() or self.format.infer(texts)

    def format_for(self) -> str | None:
        return "json" if self.config.payloads is not None else None

    def metadata(self) -> pa.Schema:
        return pa.schema([("position", pa.int64())])

    def bounded(self) -> bool:
        return True

    def initial(self) -> Offset:
        return {"rows": 0}

    def latest(self, start: Offset) -> Offset:
        return {"rows": max(self._total, int(start["rows"]))}

    def advance(self, start: Offset, end: Offset) -> Offset:
        size = max(1, math.ceil(self._total / self.config.batches))
        return {"rows": min(int(start["rows"]) + size, int(end["rows"]))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        first, last = int(start["rows"]), int(end["rows"])
        share = max(1, math.ceil((last - first) / self.config.partitions))
        return [(at, min(at + share, last)) for at in range(first, last, share)]

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        start, stop = partition
        parts = self._decoded if self.config.payloads is not None else self._typed
        for rows, positions in parts(start, stop, read):
            columns, names = list(rows.columns), list(rows.schema.names)
            if "position" in read.metadata:
                columns.append(positions)
                names.append("position")
            yield pa.record_batch(columns, names=names)

    def lag(self, at: Offset, latest: Offset) -> int:
        return int(latest["rows"]) - int(at["rows"])

    @property
    def _total(self) -> int:
        return len(self.config.rows or self.config.payloads or ())

    def _columns(self) -> pa.Schema:
        schema = self.columns or self.infer()
        if schema is None:
            raise PlanError("a source without rows needs a schema")
        return schema

    def _typed(
        self, start: int, stop: int, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        listed = (self.config.rows or [])[start:stop]
        schema = self._columns()
        for low, high, done in isolate(len(listed), lambda a, b: batch_of(listed[a:b], schema)):
            if isinstance(done, RecordError):
                payload = json.dumps(listed[low], default=str).encode()
                read.reject(payload, self.context.node, start + low + 1, done)
            else:
                yield done, _positions(start + low, start + high)

    def _decoded(
        self, start: int, stop: int, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        if self.format is None:
            raise PlanError("payloads need a format")
        payloads = _binary((self.config.payloads or [])[start:stop])
        rows, index, bad = self.format.rows(payloads, self._columns())
        for at, text, part, error in bad:
            read.reject(text, self.context.node, start + at + 1, error, part)
        positions = _positions(start, stop)
        if rows.num_rows:
            yield rows, positions if index is None else positions.take(index)


def _binary(payloads: Sequence[str]) -> pa.BinaryArray:
    return pa.array([payload.encode() for payload in payloads], pa.binary())


def _positions(start: int, stop: int) -> pa.Int64Array:
    return pa.array(range(start + 1, stop + 1), pa.int64())


class MemorySinkConfig(Config):
    name: str | None = None
    """The name of the table; the node's own name if there is none."""
    max_rows: int | None = Field(default=None, ge=1)
    """Keep only the newest rows, at most this many."""


class MemorySink(Sink[MemorySinkConfig]):
    """Keeps the rows in the driver's memory, as `penstock.connectors.memory.tables[name]`.

    They are there for the life of the process.

    ```yaml
    type: memory
    from: hourly
    name: result
    ```
    """

    acknowledges = "its rows are in the table"
    capabilities = frozenset(
        {Capability.ROWS, Capability.ORDERED, Capability.EXACTLY_ONCE, Capability.TRANSACTIONS}
    )

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.config.name or self.context.node

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> MemoryWriter:
        return MemoryWriter(partition, schema)

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        parts = [_unpack(receipt) for receipt in sorted(receipts, key=lambda r: r["partition"])]
        held = _held.setdefault(self.name, {})
        if batch in held or not parts:
            return
        held[batch] = _concatenated(parts)
        table = _concatenated([each for each in held.values() if each.num_columns])
        if self.config.max_rows is not None and table.num_rows > self.config.max_rows:
            table = table.slice(table.num_rows - self.config.max_rows)
            held.update(dict.fromkeys(held, table.slice(0, 0)))
            held[batch] = table
        tables[self.name] = table


def _concatenated(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts, promote_options="permissive")


def _unpack(receipt: Mapping[str, Any]) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(receipt["arrow"])).read_all()


class MemoryWriter(Writer):
    """Collects a partition as an Arrow stream."""

    def __init__(self, partition: int, schema: pa.Schema) -> None:
        self._partition = partition
        self._buffer = pa.BufferOutputStream()
        self._stream = pa.ipc.new_stream(self._buffer, schema)

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        self._stream.write_batch(rows)
        return ()

    def commit(self) -> Receipt:
        self._stream.close()
        packed = base64.b64encode(self._buffer.getvalue()).decode()
        return {"partition": self._partition, "arrow": packed}


__all__ = ["MemorySink", "MemorySource", "clear", "tables"]
