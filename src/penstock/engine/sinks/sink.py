"""Writing to sinks in tasks: encodes and writes rows, and returns the receipt to the driver."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from penstock.core.error_codec import encode_errors
from penstock.engine.catalyst.columns import mark_json
from penstock.engine.sinks.sink_failures import SinkReport
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.dead_letter_writer import DeadLetterWriter, Spool
from penstock.engine.tasks.write_limits import (
    UNLIMITED,
    RateLimiter,
    WriteLimits,
    rebatch,
    split_by_bytes,
)
from penstock.sdk import BatchId, Capability, Failure, Format, Sink, Writer
from penstock.sdk.columns.row_json import row_payload
from penstock.sdk.columns.utf8 import InvalidUtf8, find_invalid_text, replace_invalid_text
from penstock.sdk.operations import Operation, split_operations, unknown_operations, whole_updates
from penstock.sdk.record import Encoded

RECEIPT = pa.schema([pa.field("receipt", pa.string(), nullable=False)])
RECEIPT_DDL = "receipt STRING NOT NULL"

_clients: dict[str, tuple[Sink[Any], Any]] = {}


@dataclass(frozen=True)
class SinkTask:
    """The parameters of writing to a sink, in the process that writes.

    `operation` is the column with the operation of each row, or None. Text that is not UTF-8 is a
    bad record, or is replaced.
    """

    packed: bytes
    spool: Spool
    limits: WriteLimits = UNLIMITED
    operation: str | None = None
    invalid_utf8: InvalidUtf8 = "reject"

    @classmethod
    def of(
        cls,
        sink: Sink[Any],
        spool: Spool,
        limits: WriteLimits | None = None,
        operation: str | None = None,
        invalid_utf8: InvalidUtf8 = "reject",
    ) -> SinkTask:
        """Packs a sink."""
        limits = limits or WriteLimits(sink.max_rows_per_write)
        return cls(pickle.dumps(sink), spool, limits, operation, invalid_utf8)

    def client(self) -> tuple[Sink[Any], Any]:
        """Returns the sink and its client, created once per process and kept between batches."""
        key = hashlib.sha1(self.packed).hexdigest()
        if key not in _clients:
            sink = pickle.loads(self.packed)
            _clients[key] = sink, sink.open()
        return _clients[key]

    def discard_client(self) -> None:
        """Discards the client after a failure and closes it in the background."""
        _, client = _clients.pop(hashlib.sha1(self.packed).hexdigest(), (None, None))
        if (close := getattr(client, "close", None)) is not None:
            threading.Thread(target=_close_quietly, args=(close,), daemon=True).start()


def _close_quietly(close: Callable[[], None]) -> None:
    with suppress(Exception):
        close()


@dataclass(frozen=True)
class PartitionWriter:
    """A function for `mapInArrow`: writes the partitions of a batch and returns receipts.

    The batch is that of the task. `variants` are the columns with VARIANT, in place of which the
    rows have JSON text.
    """

    task: SinkTask
    variants: StructType | None = None
    before: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.before is not None:
            batches = self.before(batches)
        if self.variants is not None:
            batches = _mark_json(batches, self.variants)
        receipt = write(self.task, spark_task.batch(), spark_task.partition(), batches)
        if receipt is not None:
            yield pa.RecordBatch.from_pylist([{"receipt": json.dumps(receipt)}], schema=RECEIPT)


def _mark_json(batches: Iterator[pa.RecordBatch], columns: StructType) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        schema = mark_json(rows.schema, columns)
        yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def write(
    task: SinkTask, batch: BatchId, partition: int, batches: Iterator[pa.RecordBatch]
) -> Mapping[str, Any] | None:
    """Writes rows as one partition of a batch. Returns the receipt, or None without rows.

    The receipt has the keys of the writer, `rows` (written), `bad` (dead letters) and `bytes` (of
    the written payloads, unless the sink writes no payloads). A failure of the sink is reported to
    the driver (see `engine.sinks.sink_failures`).
    """
    report = SinkReport.begin(task.spool, partition, spark_task.attempt())
    with report.calls():
        sink, client = task.client()
    dead_letters = task.spool.begin(batch.number, partition)
    limiter = RateLimiter(task.limits.rate)
    writer: Writer | None = None
    written = _Count()
    try:
        valid = _with_valid_text(
            rebatch(batches, task.limits.rows), task.invalid_utf8, dead_letters
        )
        for rows in whole_updates(valid, task.operation):
            if not rows.num_rows:
                continue
            part = _Rows.split(rows, task.operation, dead_letters)
            if sink.keeps_operations:
                part = _Rows(part.original, None, part.original)
            limiter.await_turn(part.rows.num_rows)
            with report.calls():
                writer = writer or sink.writer(client, batch, partition, part.rows.schema)
                written += _write_rows(sink, writer, part, dead_letters, task.limits.bytes)
            report.clear()
        with report.calls():
            receipt = dict(writer.commit()) if writer else None
        report.clear()
        dead_letters.close()
    except BaseException:
        if writer is not None:
            writer.abort()
        task.discard_client()
        raise
    if receipt is None:
        return None
    size = {} if written.bytes is None else {"bytes": written.bytes}
    return {**receipt, "rows": written.rows, "bad": dead_letters.count, **size}


def _with_valid_text(
    batches: Iterator[pa.RecordBatch], action: InvalidUtf8, dead_letters: DeadLetterWriter
) -> Iterator[pa.RecordBatch]:
    """Yields rows whose text is UTF-8. Other rows become dead letters, or text is replaced."""
    for rows in batches:
        invalid = find_invalid_text(rows)
        if invalid and action == "replace":
            rows = replace_invalid_text(rows)
        elif invalid:
            for index, error in invalid.items():
                dead_letters.add(row_payload(rows, index), error)
            valid = [index for index in range(rows.num_rows) if index not in invalid]
            rows = rows.take(pa.array(valid, pa.int64()))
        yield rows


@dataclass(frozen=True)
class _Count:
    """Written rows, and bytes of payloads; None without payloads."""

    rows: int = 0
    bytes: int | None = None

    def __add__(self, other: _Count) -> _Count:
        sizes = [size for size in (self.bytes, other.bytes) if size is not None]
        return _Count(self.rows + other.rows, sum(sizes) if sizes else None)


@dataclass(frozen=True)
class _Rows:
    """Rows without their operation column, and the original rows, for dead letters."""

    rows: pa.RecordBatch
    operations: pa.StringArray | None
    original: pa.RecordBatch

    @classmethod
    def split(
        cls, rows: pa.RecordBatch, column: str | None, dead_letters: DeadLetterWriter
    ) -> _Rows:
        """Splits off the operation column. Rows with an unknown operation become dead letters."""
        if column is None or column not in rows.schema.names:
            return cls(rows, None, rows)
        known, errors = unknown_operations(rows, column)
        for index, error in errors:
            dead_letters.add(row_payload(rows, index), error)
        if errors:
            rows = rows.filter(known)
        return cls(*split_operations(rows, column), rows)

    def slice(self, start: int, stop: int) -> _Rows:
        """Returns a range of the rows."""
        parts = (self.rows, self.operations, self.original)
        return _Rows(*(None if part is None else part.slice(start, stop - start) for part in parts))

    def take(self, index: pa.Int64Array) -> _Rows:
        """Returns the rows with these indexes."""
        operations = None if self.operations is None else self.operations.take(index)
        return _Rows(self.rows.take(index), operations, self.original.take(index))


def _write_rows(
    sink: Sink[Any],
    writer: Writer,
    rows: _Rows,
    dead_letters: DeadLetterWriter,
    max_bytes: int | None,
) -> _Count:
    payloads = None
    if Capability.BYTES in sink.capabilities and sink.format is not None:
        encoded = _encode(sink, sink.format, rows)
        for index, error in encoded.failures:
            dead_letters.add(row_payload(rows.original, index), error)
        payloads = encoded.payloads
        if encoded.index is not None:
            rows = rows.take(encoded.index)
    written = _Count()
    for start, stop in split_by_bytes(rows.rows.num_rows, payloads, max_bytes):
        part = rows.slice(start, stop)
        bodies = None if payloads is None else payloads.slice(start, stop - start)
        if part.operations is None:
            failures = writer.write(part.rows, bodies)
        else:
            failures = writer.write(part.rows, bodies, part.operations)
        for index, error in failures:
            dead_letters.add(row_payload(part.original, index), error)
        rejected = [index for index, _ in failures]
        count = part.rows.num_rows - len(rejected)
        written += _Count(count, None if bodies is None else _size(bodies, rejected))
    return written


def _encode(sink: Sink[Any], format_: Format[Any], rows: _Rows) -> Encoded:
    """Encodes rows. Without a format that carries operations the payload of a delete is null."""
    columns, operations = sink.encoded(rows.rows), rows.operations
    if format_.carries_operations:
        if operations is None and sink.mode == "upsert":
            operations = pa.repeat(Operation.UPDATE.value, rows.rows.num_rows)
        if operations is not None:
            columns = columns.append_column(format_.operation_column, operations)
        return format_.encode(columns)
    deleted = None if operations is None else pc.equal(operations, Operation.DELETE.value)
    if deleted is None or not deleted.true_count:
        return format_.encode(columns)
    kept = pc.indices_nonzero(pc.invert(deleted)).cast(pa.int64())
    encoded = format_.encode(columns.take(kept))
    index = kept if encoded.index is None else kept.take(encoded.index)
    removed = pc.indices_nonzero(deleted).cast(pa.int64())
    order = pc.sort_indices(pa.concat_arrays([index, removed]))
    payloads = pa.concat_arrays([encoded.payloads, pa.nulls(len(removed), pa.binary())])
    failures = [Failure(kept[failure.index].as_py(), failure.error) for failure in encoded.failures]
    index = pa.concat_arrays([index, removed]).take(order)
    return Encoded(payloads.take(order), index, failures)


def _size(payloads: pa.BinaryArray, rejected: Sequence[int]) -> int:
    """Returns the size of payloads without the rejected ones."""
    lengths = pc.binary_length(payloads)
    total = pc.sum(lengths).as_py() or 0
    return total - (pc.sum(lengths.take(pa.array(rejected, pa.int64()))).as_py() or 0)
