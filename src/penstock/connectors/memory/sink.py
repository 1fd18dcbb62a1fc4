"""The memory sink, which stores rows in the process."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.core.names import written_name
from penstock.sdk import BatchId, Capability, Config, Failure, Operation, Receipt, Sink, Writer

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
