"""Batches of lake tables, written and read without Spark as the engine does it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from penstock.sdk import BatchId, Read
from servers.s3 import Bucket


def receipts_of(
    sink: Any, rows: pa.RecordBatch, number: int = 0, operations: Any = None, parts: int = 1
) -> tuple[list[Any], dict[int, str]]:
    """Writes a batch in tasks. Returns the receipts, and the messages of rejected rows."""
    sink.check_schema(rows.schema)
    sink.prepare(rows.schema)
    size = max(-(-rows.num_rows // parts), 1)
    receipts, failures = [], {}
    for start in range(0, rows.num_rows, size):
        writer = sink.writer(sink.open(), BatchId("q", number), start, rows.schema)
        kinds = None if operations is None else operations.slice(start, size)
        for failure in writer.write(rows.slice(start, size), None, kinds):
            failures[start + failure.index] = failure.error.message
        receipts.append(json.loads(json.dumps(writer.commit())))
    return receipts, failures


def write(
    sink: Any, rows: pa.RecordBatch, number: int = 0, operations: Any = None, parts: int = 1
) -> dict[int, str]:
    """Writes and commits a batch. Returns the messages of rejected rows."""
    receipts, failures = receipts_of(sink, rows, number, operations, parts)
    sink.commit(BatchId("q", number), receipts)
    return failures


def write_at_once(make: Callable[[Sequence[str], str], Any], batches: int) -> None:
    """Writes batches of two rows by three sinks at once: `a` appends, `b` and `c` upsert."""

    def run(owner: str) -> None:
        made = make(() if owner == "a" else ("id", "by"), owner)
        for number in range(batches):
            ids = [number, number + 1]
            write(made, pa.record_batch({"id": ids, "by": [owner] * 2}), number)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(run, "abc"))


def read(
    source: Any, start: Any = None, asked: Read | None = None
) -> tuple[list[dict[str, Any]], Any]:
    """Returns the rows after an offset, and the next offset, as a new process does."""
    source.columns = source.columns or columns_of(source)
    source._next_poll = 0
    start = source.initial_offset() if start is None else start
    end = json.loads(json.dumps(source.latest_offset(start)))
    copy = pickle.loads(pickle.dumps(source))
    asked = asked or Read()
    parts = pickle.loads(pickle.dumps(source.partitions(start, end)))
    rows = [row for part in parts for batch in copy.read(part, asked) for row in batch.to_pylist()]
    return rows, end


def columns_of(source: Any) -> pa.Schema:
    """Returns the columns of a source, with that of operations if it reads changes."""
    columns = source.infer_schema()
    assert columns is not None
    if source.config.changes:
        columns = columns.append(pa.field(source.operation_column, pa.string()))
    return columns


def access_to(bucket: Bucket) -> dict[str, str]:
    """Returns the options of delta-rs for a bucket."""
    storage = bucket.server.storage
    return {
        "AWS_ENDPOINT_URL": storage["endpoint_url"], "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": storage["auth"]["access_key"], "AWS_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": storage["auth"]["secret_key"],
    }  # fmt: skip
