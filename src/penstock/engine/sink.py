"""Sinks in tasks: encode, write, and give the receipt to the driver."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.engine import task as spark_task
from penstock.engine.pace import UNLIMITED, Pace, Portion, cut, gathered
from penstock.engine.spool import Letters, Spool
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.kit.rowtext import payload_of

RECEIPT = pa.schema([pa.field("receipt", pa.string(), nullable=False)])
RECEIPT_DDL = "receipt STRING NOT NULL"

_clients: dict[str, tuple[Sink[Any], Any]] = {}


@dataclass(frozen=True)
class SinkTask:
    """All that writing to a sink takes, in the process that writes."""

    packed: bytes
    spool: Spool
    portion: Portion = UNLIMITED

    @classmethod
    def of(cls, sink: Sink[Any], spool: Spool, portion: Portion | None = None) -> SinkTask:
        return cls(pickle.dumps(sink), spool, portion or Portion(sink.most_rows))

    def client(self) -> tuple[Sink[Any], Any]:
        """The sink and its client: made once in a process, kept between batches."""
        key = hashlib.sha1(self.packed).hexdigest()
        if key not in _clients:
            sink = pickle.loads(self.packed)
            _clients[key] = sink, sink.open()
        return _clients[key]

    def forget(self) -> None:
        """The client failed: the next batch makes another. Nobody waits for the end of this one."""
        _, client = _clients.pop(hashlib.sha1(self.packed).hexdigest(), (None, None))
        if (close := getattr(client, "close", None)) is not None:
            threading.Thread(target=_ended, args=(close,), daemon=True).start()


def _ended(close: Callable[[], None]) -> None:
    with suppress(Exception):
        close()


@dataclass(frozen=True)
class Write:
    """Writes the partitions of one batch: a function for `mapInArrow` that gives receipts."""

    task: SinkTask
    batch: BatchId
    before: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.before is not None:
            batches = self.before(batches)
        receipt = write(self.task, self.batch, spark_task.partition(), batches)
        if receipt is not None:
            yield pa.RecordBatch.from_pylist([{"receipt": json.dumps(receipt)}], schema=RECEIPT)


def write(
    task: SinkTask, batch: BatchId, partition: int, batches: Iterator[pa.RecordBatch]
) -> Mapping[str, Any] | None:
    """Writes rows as one partition of a batch. None where there were none.

    The receipt has the writer's own keys, `rows` (written) and `bad` (gone to the dead letters).
    """
    sink, client = task.client()
    letters = task.spool.begin(batch.number, partition)
    pace = Pace(task.portion.rate)
    writer: Writer | None = None
    written = 0
    try:
        for rows in gathered(batches, task.portion.rows):
            if not rows.num_rows:
                continue
            writer = writer or sink.writer(client, batch, partition, rows.schema)
            pace.await_turn(rows.num_rows)
            written += _write_rows(sink, writer, rows, letters, task.portion.bytes)
        receipt = dict(writer.commit()) if writer else None
        letters.close()
    except BaseException:
        if writer is not None:
            writer.abort()
        task.forget()
        raise
    if receipt is None:
        return None
    return {**receipt, "rows": written, "bad": letters.count}


def _write_rows(
    sink: Sink[Any], writer: Writer, rows: pa.RecordBatch, letters: Letters, most: int | None
) -> int:
    payloads = None
    if Capability.BYTES in sink.capabilities and sink.format is not None:
        encoded = sink.format.encode(sink.encoded(rows))
        for index, error in encoded.failures:
            letters.add(payload_of(rows, index), error)
        payloads = encoded.payloads
        if encoded.index is not None:
            rows = rows.take(encoded.index)
    written = 0
    for start, stop in cut(rows.num_rows, payloads, most):
        part = rows.slice(start, stop - start)
        given = None if payloads is None else payloads.slice(start, stop - start)
        failures = writer.write(part, given)
        for index, error in failures:
            letters.add(payload_of(part, index), error)
        written += part.num_rows - len(failures)
    return written
