"""Batches written to sinks of tables, and rows read from sources of tables, without Spark."""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import Any

import pyarrow as pa

from penstock.sdk import BatchId, Read


def write(of: Any, rows: pa.RecordBatch, number: int = 0, operations: Any = None) -> dict[int, str]:
    """Writes a batch. Returns the messages of the rejected rows by their index."""
    batch = BatchId("q", number)
    of.prepare(rows.schema)
    client = of.open()
    with closing(client) if hasattr(client, "close") else nullcontext():
        writer = of.writer(client, batch, 0, rows.schema)
        failures = writer.write(rows, None, operations)
        of.commit(batch, [writer.commit()])
    return {failure.index: failure.error.message for failure in failures}


def read(of: Any, start: Any = None) -> tuple[list[dict[str, Any]], list[str], Any]:
    """Returns the rows and the errors after an offset, and the next offset."""
    start = of.initial_offset() if start is None else start
    end = of.latest_offset(start)
    found = Read()
    rows = [
        row
        for partition in of.partitions(start, end)
        for batch in of.read(partition, found)
        for row in batch.to_pylist()
    ]
    return rows, [bad.error.message for bad in found.bad], end


def rows_of_table(
    source_type: Any, options: dict[str, Any], schema: pa.Schema
) -> list[dict[str, Any]]:
    """Returns all rows of a table, which has no bad ones."""
    source = source_type.create(source_type.config_type.model_validate(options))
    source.columns = schema
    with closing(source):
        rows, errors, _ = read(source)
    assert errors == []
    return rows
