"""Candidates for late rows: rows with an event time up to the watermark of their batch.

Tasks write the candidates of a batch beside its dead letters. The driver finds the late rows among
them (see `engine.late.late_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.tasks.event_time import EARLIEST
from penstock.sdk.record import PAYLOAD

CANDIDATES = "candidates"
"""The extension of a file with the candidates of a task."""
PART = "part"
RECORD = pa.schema([*PAYLOAD, pa.field(PART, pa.int64())])
"""The columns of a candidate's record, after those of its row.

A record with several rows has no payload here. `part` numbers its rows.
"""


@dataclass(frozen=True)
class LateCapture:
    """The capture of the candidates of one node in a stateful query with a checkpoint."""

    checkpoint: str
    event_time: str

    def watermark(self, batch: int | None) -> int | None:
        """Returns the watermark for late rows of a batch in microseconds; None in the first one.

        Spark compares the rows of a batch with the watermark of the batch before.
        """
        return late_watermark(Path(self.checkpoint), batch)

    def select(self, rows: pa.RecordBatch, watermark: int) -> np.ndarray:
        """Returns the indexes of candidates. Times out of range are bad records instead."""
        times = event_times(rows.column(self.event_time))
        earliest = int(EARLIEST.timestamp()) * 1_000_000
        late = pc.and_(pc.less_equal(times, watermark), pc.greater(times, earliest))
        return np.asarray(pc.indices_nonzero(late.fill_null(False)))


def late_watermark(checkpoint: Path, batch: int | None) -> int | None:
    """Returns the watermark up to which rows of a batch are late, in microseconds, or None."""
    if not batch:
        return None
    return OffsetLog(checkpoint).watermark(batch - 1) * 1000 or None


def event_times(times: pa.Array) -> pa.Array:
    """Returns event times as microseconds since 1970."""
    return times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())


def select_candidates(
    rows: pa.RecordBatch,
    indexes: np.ndarray,
    payloads: pa.RecordBatch | None = None,
    index: pa.Array | None = None,
) -> pa.RecordBatch:
    """Returns candidates with their records.

    Row `i` is of payload `index[i]` (None: `i`). Without `payloads` the records are null.
    """
    chosen = pa.array(indexes, pa.int64())
    count = len(chosen)
    record = [pa.nulls(count, field.type) for field in RECORD]
    if payloads is not None:
        places = chosen if index is None else index.take(chosen)
        payload, origin, position = (payloads.column(name).take(places) for name in PAYLOAD.names)
        record = [payload, origin, position, record[3]]
        if index is not None:
            shared = pa.array(np.bincount(index)[places] > 1)
            record[0] = pc.if_else(shared, pa.scalar(None, payload.type), payload)
            record[3] = pc.if_else(shared, chosen, pa.scalar(None, pa.int64()))
    columns = [*rows.take(chosen).columns, *record]
    schema = pa.schema([*rows.schema.remove_metadata(), *RECORD])
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def write_candidates(file: IO[bytes], batches: list[pa.RecordBatch]) -> None:
    """Writes candidates to a file."""
    with pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_candidates(folder: Path, node: str, stages: tuple[str, ...]) -> pa.Table | None:
    """Returns the candidates of a node in a batch, in the order of partitions; None without any."""
    files: Iterator[Path] = (
        path for stage in stages for path in folder.glob(f"{node}-{stage}-*.{CANDIDATES}")
    )
    tables = []
    for path in sorted(files, key=lambda path: int(path.stem.rpartition("-")[2])):
        with pa.memory_map(str(path)) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    return pa.concat_tables(tables).combine_chunks() if tables else None
