"""Reading of a source in tasks: decoding, pushdown, and bad records to the spool."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import Bug
from penstock.engine.sources.decoded_rows import DecodedRows, mask_without
from penstock.engine.sources.gap import Gap
from penstock.engine.sources.sentinel import sentinel
from penstock.engine.tasks.dead_letter_writer import DeadLetterWriter, Spool
from penstock.engine.tasks.event_time import find_out_of_range, latest_by_partition, out_of_range
from penstock.engine.tasks.late_candidates import LateCapture, select_candidates
from penstock.formats.json.plain import PlainJson
from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.sdk import Capability, Read, ReplayableSource
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.json_columns import find_invalid_json
from penstock.sdk.columns.predicates import matching
from penstock.sdk.decoding import decode_payloads, decode_record_in_fork
from penstock.sdk.operations import unknown_operations
from penstock.sdk.record import PAYLOAD

MIN_ROWS = 8_000
MIN_BYTES = 4 << 20
"""The rows or bytes of a batch for Spark, unless the input ends."""


@dataclass(frozen=True)
class SourceTask:
    """The parameters of reading a source, in the process that reads.

    `rows` has the columns for Spark: the source's columns, then the metadata columns under the
    names of the pipeline. With `sentinel_only` the source returns only the sentinel row, whose
    column `event_time` closes all windows. With `closes_windows` this row is part of the last
    batch of a bounded source. With `commits` Spark commits offsets to the source when
    the next batch begins; a pipeline commits offsets itself (`runtime.acknowledge`). Rows and
    columns outside `pushdown` may be omitted. With `null_unused_columns` such columns are null, for
    plans whose dead letters do not need whole rows. An idle source is polled for up to
    `poll_timeout` seconds before Spark receives the same offset, because a poll by Spark costs ten
    times as much. With `latest_time` rows with an event time out of range are bad records (see
    `engine.tasks.event_time`). With `whole_input` a batch has no limit. The start offset is
    recorded in `checkpoint`. `late` captures rows that may be late. With `partition_idle` the
    partitions of the source have watermarks, and are idle after this time in seconds (see
    `engine.watermarks.partition_watermarks`). Rows with an unknown operation in the column
    `operation` are bad records. With `gap` a batch starts after a time without new records.
    """

    source: ReplayableSource[Any]
    rows: pa.Schema
    metadata: Mapping[str, str]
    spool: Spool
    event_time: str | None = None
    sentinel_only: bool = False
    closes_windows: bool = False
    commits: bool = False
    pushdown: Pushdown = EVERYTHING
    null_unused_columns: bool = False
    poll_timeout: float = 0.0
    latest_time: datetime | None = None
    whole_input: bool = False
    checkpoint: str | None = None
    late: LateCapture | None = None
    partition_idle: float | None = None
    operation: str | None = None
    gap: Gap | None = None

    def pack(self) -> str:
        """Returns the task as text, for the options of a PySpark reader."""
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def unpack(text: str) -> SourceTask:
        """Returns the task of a text from `pack`."""
        task = pickle.loads(base64.b64decode(text))
        if not isinstance(task, SourceTask):
            raise Bug("the option of the data source is not a task")
        return task

    def read(
        self, partition: Any, dead_letters: DeadLetterWriter, isolated: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition of the source. Adds bad records to `dead_letters`,
        and counts valid rows there.

        With `isolated` a payload or file that crashes its decoder is a bad record. Otherwise the
        crash ends this process.
        """
        return rebatch(self._read(partition, dead_letters, isolated))

    def _read(
        self, partition: Any, dead_letters: DeadLetterWriter, isolated: bool
    ) -> Iterator[pa.RecordBatch]:
        read = replace(self._read_request(), isolated=isolated)
        watermark = self.late.watermark(dead_letters.batch) if self.late is not None else None
        for batch in self.source.read(partition, read):
            decoded = self._decode(batch, dead_letters, isolated)
            self._move_bad_records(read, dead_letters)
            rows = decoded.rows
            if rows.num_rows:
                decoded.rows = self._conform(rows)
                if not isinstance(self.source.format, PlainJson):
                    decoded.reject(find_invalid_json(decoded.rows), dead_letters)
                if self.late is not None and watermark is not None:
                    indexes = self.late.select(decoded.rows, watermark)
                    if len(indexes):
                        candidates = select_candidates(
                            decoded.rows, indexes, decoded.payloads, decoded.index
                        )
                        dead_letters.candidates.append(candidates)
                if self.operation is not None:
                    _, errors = unknown_operations(decoded.rows, self.operation)
                    decoded.reject(dict(errors), dead_letters)
                if self.latest_time is not None:
                    self._reject_times(decoded, dead_letters)
                rows = self._apply_pushdown(decoded.rows, read)
            if rows.num_rows:
                dead_letters.read += rows.num_rows
                yield self._null_unused(rows) if self.null_unused_columns else rows
        self._move_bad_records(read, dead_letters)
        dead_letters.read += read.skipped

    def decode_again(
        self,
        payload: bytes,
        origin: str,
        position: int,
        header: bytes | None = None,
        isolated: bool = False,
    ) -> pa.RecordBatch:
        """Decodes a dead letter to rows. Raises RecordError.

        Metadata that `Source.record_metadata` does not return are null. With `isolated` a decoder
        that crashes does not end this process.
        """

        def decode() -> pa.RecordBatch:
            if header is None:
                return self.source.decode(payload, origin, position)
            return self.source.decode_with_header(payload, origin, position, header)

        rows = decode_record_in_fork(decode) if isolated else decode()
        known = self.source.record_metadata(origin, position) if origin is not None else {}
        fields = list(self.rows)[rows.num_columns :]
        for field, name in zip(fields, self.metadata.values(), strict=True):
            value = pa.scalar(known.get(name), field.type)
            rows = rows.append_column(field, pa.repeat(value, rows.num_rows))
        return self._conform(rows)

    def sentinel(self) -> pa.RecordBatch:
        """Returns the sentinel row."""
        return sentinel(self.rows, self.event_time)

    def _read_request(self) -> Read:
        """Returns the pushdown for the source; without conjuncts if rows move the watermark."""
        source_columns = self.rows.names[: len(self.rows) - len(self.metadata)]
        columns = None
        if self.pushdown.columns is not None:
            columns = frozenset(name for name in source_columns if name in self._columns)
        conjuncts = () if self.event_time is not None else self.pushdown.conjuncts
        pushed = tuple(conjunct for conjunct in conjuncts if conjunct.column in source_columns)
        metadata = tuple(self.metadata.values())
        if Capability.BYTES in self.source.capabilities:
            metadata = tuple(name for name in metadata if name not in PAYLOAD.names)
        return Read(columns, pushed, metadata)

    @property
    def _columns(self) -> frozenset[str]:
        """Used columns and columns that are not nullable."""
        used = self.pushdown.columns
        fields = [f for f in self.rows if used is None or f.name in used or not f.nullable]
        return frozenset(field.name for field in fields)

    def _null_unused(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Replaces unused columns by nulls, which saves Spark a copy."""
        count, used = rows.num_rows, self._columns
        columns = [
            column if field.name in used else pa.nulls(count, field.type)
            for field, column in zip(self.rows, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.rows)

    def _apply_pushdown(self, rows: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        """Returns the rows that match the conjuncts, and the row with the latest event time."""
        if not self.pushdown.conjuncts:
            return rows
        mask = matching(rows, self.pushdown.conjuncts)
        if mask.true_count == rows.num_rows:
            return rows
        if self.event_time is not None:
            times = rows.column(self.event_time)
            latest = pc.index(times, pc.max(times)).as_py()
            mask = pa.array(np.asarray(mask.fill_null(False)) | (np.arange(len(mask)) == latest))
        needed = rows.filter(mask)
        read.skipped += rows.num_rows - needed.num_rows
        return needed

    def _reject_times(self, decoded: DecodedRows, dead_letters: DeadLetterWriter) -> None:
        """Keeps the rows whose event time is in range, and adds the others to `dead_letters`."""
        assert self.event_time is not None and self.latest_time is not None
        times = decoded.rows.column(self.event_time)
        dead_letters.untimed += times.null_count
        bad = find_out_of_range(times, self.latest_time)
        errors = {number: out_of_range(self.event_time, times[number]) for number in bad}
        origins = decoded.origins if self.partition_idle is not None else None
        if origins is not None:
            valid = mask_without(len(times), bad)
            times, origins = times.filter(valid), origins.filter(valid)
            dead_letters.observe(latest_by_partition(times, origins, self.source.partition_of))
        decoded.reject(errors, dead_letters)

    def _decode(
        self, batch: pa.RecordBatch, dead_letters: DeadLetterWriter, isolated: bool
    ) -> DecodedRows:
        """Returns the rows of payloads, or the rows of a source that decodes by itself."""
        if Capability.BYTES not in self.source.capabilities:
            return DecodedRows(batch)
        decoded = decode_payloads(self.source, batch, isolated)
        for index, text, part, error in decoded.failures:
            origin, position = batch.column("origin")[index], batch.column("position")[index]
            dead_letters.add(text, error, origin.as_py(), position.as_py(), part)
        rows = decoded.rows
        for name in self.metadata.values():
            column = batch.column(name)
            if decoded.index is not None:
                column = column.take(decoded.index)
            rows = rows.append_column(f"metadata:{name}", column)
        return DecodedRows(rows, batch, decoded.index)

    def _conform(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return conform(rows.rename_columns(self.rows.names), self.rows)

    def _move_bad_records(self, read: Read, dead_letters: DeadLetterWriter) -> None:
        for record in read.bad:
            dead_letters.add(
                record.payload, record.error, record.origin, record.position, record.part,
                record.header,
            )  # fmt: skip
        read.bad.clear()


def rebatch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Concatenates small batches: the cost of a batch in Spark hardly depends on its size."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= MIN_ROWS or size >= MIN_BYTES:
            yield pending[0] if len(pending) == 1 else pa.concat_batches(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pending[0] if len(pending) == 1 else pa.concat_batches(pending)
