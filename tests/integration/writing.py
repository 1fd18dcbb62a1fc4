"""Rows that a sink writes, as one batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.sdk import BatchId, Failure, Sink

FIRST = BatchId("query-1", 0)


def written(sink: Sink[Any], rows: list[dict[str, Any]], batch: BatchId = FIRST) -> list[Failure]:
    """Writes rows whose column `text` is the payload."""
    columns = pa.RecordBatch.from_pylist(rows)
    sink.check_schema(columns.schema)
    client = sink.open()
    try:
        writer = sink.writer(client, batch, 0, columns.schema)
        failures = writer.write(columns, columns.column("text").cast(pa.binary()))
        writer.commit()
    finally:
        client.close()
    return list(failures)
