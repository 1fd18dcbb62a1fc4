"""Base of sources of generated rows: offsets are row numbers, and a clock limits the rate."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from penstock.core.errors import DecodeError
from penstock.core.text import shorten
from penstock.core.units import PositiveDuration
from penstock.sdk.capability import Capability
from penstock.sdk.config import Config
from penstock.sdk.record import Read
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.source import Offset
from penstock.sdk.synthetic.clock import Clock
from penstock.sdk.synthetic.random import Integers

ROWS_PER_BATCH = 65_536


class SyntheticConfig(Config):
    """Options of all sources of generated rows."""

    rows: int | None = Field(default=None, ge=0)
    """The number of rows. By default the source runs continuously."""
    rate: float | None = Field(default=None, gt=0)
    """Rows per second. Unlimited by default."""
    batch_time: PositiveDuration = 1.0
    """The time whose rows a batch has, with `rows` and `rate`."""
    max_records: int = Field(default=100_000, ge=1)
    """The maximum number of rows in a batch."""
    partitions: int = Field(default=1, ge=1)
    """The number of partitions of a batch."""


P = TypeVar("P", bound=SyntheticConfig)


@dataclass(frozen=True)
class RowRange:
    """The rows `start` to `stop`, and their clock."""

    start: int
    stop: int
    clock: Clock


class SyntheticSource(ReplayableSource[P]):
    """A source whose rows are a function of their numbers. A subclass implements `generate`."""

    parallelism = "an equal share of a batch"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ORDERED,
            Capability.ROWS,
        }
    )
    default_rate: ClassVar[float] = 1.0
    """The rows per second of the clock without the option `rate`."""
    _pace: tuple[int, int] | None = None
    """The first row and the start time of this run."""

    @abstractmethod
    def generate(
        self, rows: Integers, clock: Clock, columns: frozenset[str] | None
    ) -> pa.RecordBatch:
        """Returns the rows of these numbers. Columns other than `columns` may be null."""

    def times(self, rows: Integers, clock: Clock) -> Integers:
        """Returns the times of these rows, in microseconds since 1970."""
        return clock.at(rows)

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([("position", pa.int64()), ("time", pa.timestamp("us", tz="UTC"))])

    def is_bounded(self) -> bool:
        return self.config.rows is not None

    def initial_offset(self) -> Offset:
        return self._offset(0, 0, now_micros())

    def latest_offset(self, start: Offset) -> Offset:
        """Returns the end of a bounded source, else the last row that is due.

        Each run counts from its start. Rows due in a downtime are not generated later.
        """
        rows, rate = int(start["rows"]), self.config.rate
        row, started = self._pace = self._pace or (rows, now_micros())
        if self.config.rows is not None:
            due = self.config.rows
        elif rate is not None:
            due = row + math.floor((now_micros() - started) / 1e6 * rate)
        else:
            due = rows + self.config.max_records
        return start if due <= rows else self._offset(due, row, started)

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        """Limits a batch to `max_records`.

        With a rate, a batch of a bounded source has the rows of about `batch_time`. The call waits
        until these rows are due.
        """
        limit, rate = self.config.max_records, self.config.rate
        if rate is not None and self.config.rows is not None:
            limit = min(limit, max(1, round(rate * self.config.batch_time)))
        rows = min(int(end["rows"]), int(start["rows"]) + limit)
        if rate is not None and self.config.rows is not None:
            due = int(end["time"]) / 1e6 + (rows - int(end["row"])) / rate
            time.sleep(max(0.0, due - now_micros() / 1e6))
        return {**end, "rows": rows}

    def partitions(self, start: Offset, end: Offset) -> Sequence[RowRange]:
        first, last = int(start["rows"]), int(end["rows"])
        size = max(1, math.ceil((last - first) / self.config.partitions))
        step = 1e6 / (self.config.rate or self.default_rate)
        clock = Clock(int(end["row"]), int(end["time"]), step)
        return [
            RowRange(start_row, min(start_row + size, last), clock)
            for start_row in range(first, last, size)
        ]

    def read(self, partition: RowRange, read: Read) -> Iterator[pa.RecordBatch]:
        for start in range(partition.start, partition.stop, ROWS_PER_BATCH):
            rows = np.arange(start, min(start + ROWS_PER_BATCH, partition.stop), dtype=np.int64)
            batch = self._cast_columns(self.generate(rows, partition.clock, read.columns))
            for name in read.metadata:
                values = rows if name == "position" else self.times(rows, partition.clock)
                batch = batch.append_column(
                    name, pa.array(values, self.metadata_schema().field(name).type)
                )
            yield batch

    def lag(self, current: Offset, latest: Offset) -> int:
        return int(latest["rows"]) - int(current["rows"])

    def _offset(self, rows: int, row: int, started: int) -> Offset:
        return {"rows": rows, "row": row, "time": started}

    def _cast_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.columns is None or batch.schema.equals(self.columns):
            return batch
        return pa.record_batch([_cast(batch, field) for field in self.columns], schema=self.columns)


def _cast(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    try:
        return batch.column(field.name).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DecodeError(
            f'cannot convert column "{field.name}" to {field.type}', detail=shorten(str(error))
        ) from error


def now_micros() -> int:
    """Returns the current time in microseconds since 1970."""
    return time.time_ns() // 1000
