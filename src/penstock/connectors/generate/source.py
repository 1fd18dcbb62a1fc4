"""The source of generated rows: positions by number of rows, held to a rate by the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.generate.fields import Clock, FieldSpec
from penstock.connectors.generate.random import Stream
from penstock.core.text import shorten
from penstock.sdk import Capability, Config, DecodeError, Offset, Read, ReplayableSource
from penstock.sdk.kit.rows import batch_of, infer_rows

ROWS_AT_ONCE = 65_536


class GenerateSourceConfig(Config):
    fields: dict[str, FieldSpec] = {}
    """The columns: a type name (`sequence`, `uuid`, `name` ...) or a map with its options."""
    sample: list[dict[str, Any]] = []
    """Rows that are delivered over and over; `fields` add columns to them or replace some."""
    rows: int | None = Field(default=None, ge=0)
    """How many rows there are; without it they never end."""
    rate: float | None = Field(default=None, gt=0)
    """Rows per second; without it as many as can be processed."""
    max_rows: int = Field(default=100_000, ge=1)
    """The most rows of one batch."""
    seed: int = 0
    """Another seed, other rows; the same seed, the same rows."""
    partitions: int = Field(default=1, ge=1)
    """Into how many partitions a batch is divided."""

    @model_validator(mode="after")
    def _something(self) -> GenerateSourceConfig:
        if not self.fields and not self.sample:
            raise ValueError("give fields, a sample, or both")
        return self


@dataclass(frozen=True)
class Span:
    """Rows `start` to `stop` and the clock that they were made by."""

    start: int
    stop: int
    clock: Clock


class GenerateSource(ReplayableSource[GenerateSourceConfig]):
    """Makes up rows: for first steps, tests and load.

    The unit of parallelism is an equal share of a batch. A row depends on nothing but the seed
    and its number, so rows can be read again and the source can be part of an exactly-once
    pipeline.

    ```yaml
    type: generate
    rate: 1000
    fields:
      id: sequence
      at: timestamp
      user: name
      page: {type: choice, of: [home, search, cart], weights: [6, 3, 1]}
      amount: {type: number, max: 100, decimals: 2}
    ```
    """

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
    _pace: tuple[int, int] | None = None
    """The row and the time at which this run took up the rate."""

    def schema(self) -> pa.Schema:
        types = {f.name: f.type for f in infer_rows(self.config.sample)}
        types |= {name: spec.kind() for name, spec in self.config.fields.items()}
        return pa.schema(list(types.items()))

    def metadata(self) -> pa.Schema:
        return pa.schema([("position", pa.int64())])

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
        clock = Clock(int(end["row"]), int(end["time"]), 1e6 / (self.config.rate or 1))
        return [Span(at, min(at + share, last), clock) for at in range(first, last, share)]

    def read(self, partition: Span, read: Read) -> Iterator[pa.RecordBatch]:
        stream = Stream(self.config.seed, "row")
        for start in range(partition.start, partition.stop, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, partition.stop), dtype=np.int64)
            made = self._fit(self._made(rows, stream, partition.clock, read.columns))
            if "position" in read.metadata:
                made = made.append_column("position", pa.array(rows))
            yield made

    def lag(self, at: Offset, latest: Offset) -> int:
        return int(latest["rows"]) - int(at["rows"])

    def _offset(self, rows: int, row: int, at: int) -> Offset:
        return {"rows": rows, "row": row, "time": at}

    def _made(
        self, rows: Any, stream: Stream, clock: Clock, wanted: frozenset[str] | None
    ) -> pa.RecordBatch:
        made: dict[str, pa.Array] = {}
        if self.config.sample:
            listed = batch_of(self.config.sample, infer_rows(self.config.sample))
            cycled = listed.take(pa.array(rows % listed.num_rows))
            made.update(zip(cycled.schema.names, cycled.columns, strict=True))
        for name, spec in self.config.fields.items():
            if wanted is None or name in wanted:
                made[name] = spec.column(rows, stream.child(name), clock)
            else:
                made[name] = pa.nulls(len(rows), spec.kind())
        return pa.record_batch(made)

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
