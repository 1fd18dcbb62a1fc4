"""States of handlers as bytes: plain values as JSON, followed by record batches as Arrow streams.

All batches with equal columns are one batch in the bytes, so the cost of a state does not grow with
the number of its groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import StateError
from penstock.handlers.rows import joined

State = Mapping[str, Any]
"""Numbers, texts, lists, maps, arrays of numpy, and record batches."""
_BATCH, _ARRAY = "arrow", "array"
_LENGTH = 8


def encode(state: State) -> bytes:
    """Returns a state as bytes."""
    tables = _Tables()
    tree = json.dumps(dict(state), default=tables.add)
    streams = tables.streams()
    header = json.dumps([len(tree), *map(len, streams)]).encode()
    return b"".join((len(header).to_bytes(_LENGTH), header, tree.encode(), *streams))


def decode(state: bytes) -> dict[str, Any]:
    """Returns the state that `encode` has stored. Raises StateError for one of an old version."""
    if state.startswith(b"{"):
        raise StateError(
            "the state of handlers was written by an earlier version of Penstock",
            hint="Reset the state with penstock run --fresh.",
        )
    start = _LENGTH + int.from_bytes(state[:_LENGTH])
    parts = []
    for size in json.loads(state[_LENGTH:start]):
        parts.append(state[start : start + size])
        start += size
    tree, *streams = parts
    tables = [pa.ipc.open_stream(stream).read_next_batch() for stream in streams]

    def value_of(value: dict[str, Any]) -> Any:
        if value.keys() == {_ARRAY}:
            table, start, length = value[_ARRAY]
            return tables[table].column(0).slice(start, length).to_numpy(False).copy()
        if value.keys() == {_BATCH}:
            table, start, length, metadata = value[_BATCH]
            return tables[table].slice(start, length).replace_schema_metadata(metadata)
        return value

    values: dict[str, Any] = json.loads(tree, object_hook=value_of)
    return values


class _Tables:
    """Record batches of a state, joined by their columns."""

    def __init__(self) -> None:
        self._batches: list[list[pa.RecordBatch]] = []
        self._rows: list[int] = []

    def add(self, value: Any) -> dict[str, Any]:
        """Adds a batch or an array. Returns its place."""
        if isinstance(value, np.ndarray):
            return {_ARRAY: self._place(pa.record_batch([pa.array(value)], ["values"]))}
        metadata = {k.decode(): v.decode() for k, v in (value.schema.metadata or {}).items()}
        return {_BATCH: [*self._place(value.replace_schema_metadata(None)), metadata or None]}

    def _place(self, batch: pa.RecordBatch) -> list[int]:
        """Returns the table of a batch, its first row there, and its number of rows."""
        schema = batch.schema
        known = (each[0].schema.equals(schema, check_metadata=True) for each in self._batches)
        table = next((number for number, equal in enumerate(known) if equal), len(self._rows))
        if table == len(self._rows):
            self._batches.append([])
            self._rows.append(0)
        start = self._rows[table]
        self._batches[table].append(batch)
        self._rows[table] += batch.num_rows
        return [table, start, batch.num_rows]

    def streams(self) -> list[bytes]:
        """Returns an Arrow stream of each table."""
        return [_stream(joined(batches)) for batches in self._batches]


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content
