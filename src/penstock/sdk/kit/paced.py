"""Sources of made-up rows: positions by number of rows, held to a rate by the clock."""

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
from penstock.sdk.capability import Capability
from penstock.sdk.config import Config
from penstock.sdk.kit.clock import Clock
from penstock.sdk.kit.random import Integers
from penstock.sdk.record import Read
from penstock.sdk.source import Offset, ReplayableSource

ROWS_AT_ONCE = 65_536


class PacedConfig(Config):
    """How many rows, how fast, how divided."""

    rows: int | None = Field(default=None, ge=0)
    """How many rows there are; without it they never end."""
    rate: float | None = Field(default=None, gt=0)
    """Rows per second; without it as many as can be processed."""
    max_rows: int = Field(default=100_000, ge=1)
    """The most rows of one batch."""
    partitions: int = Field(default=1, ge=1)
    """Into how many partitions a batch is divided."""


P = TypeVar("P", bound=PacedConfig)


@dataclass(frozen=True)
class Span:
    """Rows `start` to `stop` and the clock that they were made by."""

    start: int
    stop: int
    clock: Clock


class PacedSource(ReplayableSource[P]):
    """A source whose rows follow from their numbers: say what they are in `made`."""

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
    usual_rate: ClassVar[float] = 1.0
    """The rows per second of the rows' clock where the options name no rate."""
    _pace: tuple[int, int] | None = None
    """The row and the time at which this run took up the rate."""

    @abstractmethod
    def made(self, rows: Integers, clock: Clock, wanted: frozenset[str] | None) -> pa.RecordBatch:
        """The rows of these numbers; columns that are not `wanted` may be null."""

    def times(self, rows: Integers, clock: Clock) -> Integers:
        """The times of these rows, in microseconds since 1970."""
        return clock.at(rows)

    def metadata(self) -> pa.Schema:
        return pa.schema([("position", pa.int64()), ("time", pa.timestamp("us", tz="UTC"))])

    def bounded(self) -> bool:
        return self.config.rows is not None

    def initial(self) -> Offset:
        return self._offset(0, 0, _now())

    def latest(self, start: Offset) -> Offset:
        """All rows where they end, else those that are due.

        A rate starts anew with each run, so that time off is not made up.
        """
        rows, rate = int(start["rows"]), self.config.rate
        row, at = self._pace = self._pace or (rows, _now())
        if self.config.rows is not None:
            due = self.config.rows
        elif rate is not None:
            due = row + math.floor((_now() - at) / 1e6 * rate)
        else:
            due = rows + self.config.max_rows
        return start if due <= rows else self._offset(due, row, at)

    def advance(self, start: Offset, end: Offset) -> Offset:
        """The next rows; where rows end and have a rate, waits for them, about a second's worth."""
        most, rate = self.config.max_rows, self.config.rate
        if rate is not None and self.config.rows is not None:
            most = min(most, max(1, round(rate)))
        rows = min(int(end["rows"]), int(start["rows"]) + most)
        if rate is not None and self.config.rows is not None:
            due = int(end["time"]) / 1e6 + (rows - int(end["row"])) / rate
            time.sleep(max(0.0, due - _now() / 1e6))
        return {**end, "rows": rows}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Span]:
        first, last = int(start["rows"]), int(end["rows"])
        share = max(1, math.ceil((last - first) / self.config.partitions))
        step = 1e6 / (self.config.rate or self.usual_rate)
        clock = Clock(int(end["row"]), int(end["time"]), step)
        return [Span(at, min(at + share, last), clock) for at in range(first, last, share)]

    def read(self, partition: Span, read: Read) -> Iterator[pa.RecordBatch]:
        for start in range(partition.start, partition.stop, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, partition.stop), dtype=np.int64)
            made = self._fit(self.made(rows, partition.clock, read.columns))
            for name in read.metadata:
                values = rows if name == "position" else self.times(rows, partition.clock)
                made = made.append_column(name, pa.array(values, self.metadata().field(name).type))
            yield made

    def lag(self, at: Offset, latest: Offset) -> int:
        return int(latest["rows"]) - int(at["rows"])

    def _offset(self, rows: int, row: int, at: int) -> Offset:
        return {"rows": rows, "row": row, "time": at}

    def _fit(self, made: pa.RecordBatch) -> pa.RecordBatch:
        if self.columns is None or made.schema.equals(self.columns):
            return made
        return pa.record_batch([_cast(made, field) for field in self.columns], schema=self.columns)


def _cast(made: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in made.schema.names:
        return pa.nulls(made.num_rows, field.type)
    try:
        return made.column(field.name).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DecodeError(
            f'column "{field.name}" is not {field.type}', detail=shorten(str(error))
        ) from error


def _now() -> int:
    return time.time_ns() // 1000
