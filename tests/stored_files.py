"""Files in object stores, read and written by hand."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.connectors.files import FilesSink, FilesSource
from penstock.sdk import BatchId, Read

ID = pa.schema([pa.field("id", pa.int64())])
ROW = b'{"id": 1}\n'


def ids(source: FilesSource) -> list[int]:
    """Returns the IDs of all rows, and commits them."""
    start = source.initial_offset()
    end = source.latest_offset(start)
    batches = [b for p in source.partitions(start, end) for b in source.read(p, Read())]
    source.commit(end)
    return [row["id"] for batch in batches for row in batch.to_pylist()]


def write(sink: FilesSink, number: int, rows: list[dict[str, Any]], schema: pa.Schema = ID) -> None:
    """Writes and commits a batch."""
    batch = BatchId("q", number)
    writer = sink.writer(None, batch, 0, schema)
    writer.write(pa.RecordBatch.from_pylist(rows, schema))
    sink.commit(batch, [json.loads(json.dumps(writer.commit()))])
