"""Memory: a source of rows of the pipeline file, and a sink that stores rows in the process."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.core.errors import PlanError, RecordError
from penstock.core.names import written_name
from penstock.sdk import (
    BatchId,
    Capability,
    Config,
    Failure,
    Offset,
    Operation,
    Read,
    Receipt,
    ReplayableSource,
    Sink,
    Writer,
    bisect_failures,
)
from penstock.sdk.columns.row_json import row_text
from penstock.sdk.columns.rows import batch_of, infer_rows

tables: dict[str, pa.Table] = {}
"""The tables of the memory sinks of this process, by name."""

OPERATION = "_operation"
"""The column of a receipt that holds the operations of its rows."""

committed: dict[str, dict[BatchId, pa.Table]] = {}
"""The batches of these tables, by the name of the table."""


def clear() -> None:
    """Removes all tables."""
    tables.clear()
    committed.clear()


class MemorySourceConfig(Config):
    rows: list[dict[str, Any]] | None = None
    """The rows, each a map of column to value. Missing columns are null."""
    payloads: list[str] | None = None
    """Encoded records instead of rows, decoded by `format`."""
    batches: int = Field(default=1, ge=1)
    """The number of batches."""
    partitions: int = Field(default=1, ge=1)
    """The number of partitions of a batch."""

    @model_validator(mode="after")
    def _check_one_option(self) -> MemorySourceConfig:
        if (self.rows is None) == (self.payloads is None):
            raise ValueError("expected either rows or payloads")
        return self


class MemorySource(ReplayableSource[MemorySourceConfig]):
    """Reads the rows of the option `rows` or `payloads`.

    The rows are divided evenly into batches and partitions. A restarted pipeline resumes after the
    last committed batch.

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

    def infer_schema(self) -> pa.Schema | None:
        if self.config.payloads is None or self.format is None:
            return self.schema()
        texts = self.format.records(_binary(self.config.payloads)).texts
        return self.format.declared_schema() or self.format.infer_schema(texts)

    def default_format(self) -> str | None:
        return "json" if self.config.payloads is not None else None

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([("position", pa.int64())])

    def is_bounded(self) -> bool:
        return True

    def initial_offset(self) -> Offset:
        return {"rows": 0}

    def latest_offset(self, start: Offset) -> Offset:
        return {"rows": max(self._total, int(start["rows"]))}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        size = max(1, math.ceil(self._total / self.config.batches))
        return {"rows": min(int(start["rows"]) + size, int(end["rows"]))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        first, last = int(start["rows"]), int(end["rows"])
        size = max(1, math.ceil((last - first) / self.config.partitions))
        return [(low, min(low + size, last)) for low in range(first, last, size)]

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        start, stop = partition
        batches = self._decode_payloads if self.config.payloads is not None else self._convert_rows
        for rows, positions in batches(start, stop, read):
            columns, names = list(rows.columns), list(rows.schema.names)
            if "position" in read.metadata:
                columns.append(positions)
                names.append("position")
            yield pa.record_batch(columns, names=names)

    def lag(self, current: Offset, latest: Offset) -> int:
        return int(latest["rows"]) - int(current["rows"])

    @property
    def _total(self) -> int:
        return len(self.config.rows or self.config.payloads or ())

    def _columns(self) -> pa.Schema:
        schema = self.columns or self.infer_schema()
        if schema is None:
            raise PlanError("a memory source without rows requires a schema")
        return schema

    def _convert_rows(
        self, start: int, stop: int, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        selected = (self.config.rows or [])[start:stop]
        schema = self._columns()
        for low, high, result in bisect_failures(
            len(selected), lambda low, high: batch_of(selected[low:high], schema)
        ):
            if isinstance(result, RecordError):
                payload = row_text(selected[low]).encode()
                read.reject(payload, self.context.node, start + low + 1, result)
            else:
                yield result, _positions(start + low, start + high)

    def _decode_payloads(
        self, start: int, stop: int, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        if self.format is None:
            raise PlanError("payloads requires a format")
        payloads = _binary((self.config.payloads or [])[start:stop])
        rows, indexes, bad = self.format.rows(payloads, self._columns())
        for index, text, part, error in bad:
            read.reject(text, self.context.node, start + index + 1, error, part)
        positions = _positions(start, stop)
        if rows.num_rows:
            yield rows, positions if indexes is None else positions.take(indexes)


def _binary(payloads: Sequence[str]) -> pa.BinaryArray:
    return pa.array([payload.encode() for payload in payloads], pa.binary())


def _positions(start: int, stop: int) -> pa.Int64Array:
    return pa.array(range(start + 1, stop + 1), pa.int64())


class MemorySinkConfig(Config):
    name: str | None = None
    """The name of the table. The name of the node by default."""
    max_records: int | None = Field(default=None, ge=1)
    """The maximum number of rows to keep. The oldest rows are removed first."""


class MemorySink(Sink[MemorySinkConfig]):
    """Stores rows in the memory of the driver, as `penstock.connectors.memory.tables[name]`.

    The table exists until the end of the process. With `mode: upsert` rows replace rows with the
    same primary key, and deletes remove rows; with `mode: replace` the table holds the last batch.

    ```yaml
    type: memory
    from: hourly
    name: result
    ```
    """

    acknowledges = "its rows are in the table"
    capabilities = frozenset(
        {
            Capability.ROWS,
            Capability.ORDERED,
            Capability.EXACTLY_ONCE,
            Capability.TRANSACTIONS,
            Capability.UPSERT,
            Capability.DELETE,
            Capability.REPLACE,
        }
    )

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.config.name or written_name(self.context.node)

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> MemoryWriter:
        return MemoryWriter(partition, schema)

    def last_batch(self, query: str) -> BatchId | None:
        batches = [batch for batch in committed.get(self.name, ()) if batch.query == query]
        return max(batches, key=lambda batch: batch.number, default=None)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        parts = [
            _unpack(receipt)
            for receipt in sorted(receipts, key=lambda receipt: int(receipt["partition"]))
        ]
        batches = committed.setdefault(self.name, {})
        if batch in batches or not parts:
            return
        rows = _concatenate(parts)
        if self.mode == "upsert":
            rows = _merge([*batches.values(), rows], self.primary_key)
        if self.mode != "append":
            batches.update({number: table.slice(0, 0) for number, table in batches.items()})
        batches[batch] = rows
        table = _concatenate([part for part in batches.values() if part.num_columns])
        if self.config.max_records is not None and table.num_rows > self.config.max_records:
            table = table.slice(table.num_rows - self.config.max_records)
            batches.update(dict.fromkeys(batches, table.slice(0, 0)))
            batches[batch] = table
        tables[self.name] = table


def _merge(parts: list[pa.Table], key: Sequence[str]) -> pa.Table:
    """Returns the last row of each key, without keys whose last operation is a delete."""
    rows = _concatenate(parts)
    deleted = [False] * rows.num_rows
    if OPERATION in rows.column_names:
        operations = rows.column(OPERATION).to_pylist()
        deleted = [operation == Operation.DELETE for operation in operations]
        rows = rows.drop_columns([OPERATION])
    last: dict[Any, int] = {}
    keys = zip(*(rows.column(name).to_pylist() for name in key), strict=True)
    for index, values in enumerate(map(_hashable, keys)):
        last.pop(values, None)
        last[values] = index
    indexes = [index for index in last.values() if not deleted[index]]
    return rows.take(pa.array(indexes, pa.int64()))


def _hashable(value: Any) -> Any:
    """Returns a value with tuples in place of structs and lists."""
    if isinstance(value, dict):
        return tuple((name, _hashable(inner)) for name, inner in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _concatenate(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts, promote_options="permissive")


def _unpack(receipt: Mapping[str, Any]) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(receipt["arrow"])).read_all()


class MemoryWriter(Writer):
    """Writes a partition to an Arrow stream in memory."""

    def __init__(self, partition: int, schema: pa.Schema) -> None:
        self._partition = partition
        self._batches: list[pa.RecordBatch] = []
        self._schema = schema

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        if operations is not None:
            rows = rows.append_column(OPERATION, operations)
        self._batches.append(rows)
        return ()

    def commit(self) -> Receipt:
        schema = self._batches[0].schema if self._batches else self._schema
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, schema) as stream:
            for rows in self._batches:
                stream.write_batch(rows)
        packed = base64.b64encode(buffer.getvalue()).decode()
        return {"partition": self._partition, "arrow": packed}


__all__ = ["MemorySink", "MemorySource", "clear", "tables"]
