"""Answers with metrics over time and with batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.server.history.levels import Value
from penstock.server.history.sampling import Metric, Series
from penstock.server.history.store import Row

UNITS: Mapping[Metric, str] = {
    "rows_per_second": "rows/s",
    "bytes_per_second": "bytes/s",
    "dead_letters_per_second": "dead letters/s",
    "lag": "records",
    "batches_per_second": "batches/s",
    "batch_seconds": "s",
    "phase_seconds": "s",
    "watermark_delay_seconds": "s",
    "late_rows_per_second": "rows/s",
    "state_rows": "rows",
    "state_bytes": "bytes",
    "restarts_per_second": "restarts/s",
}


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class MetricSeries(Answer):
    """The values of a metric. `scope` is the kind of the part `name`, null for the pipeline."""

    metric: Metric
    unit: str
    scope: Literal["pipeline", "node", "query"]
    name: str | None
    phase: str | None = Field(description="The phase of a batch, for phase_seconds.")
    values: list[float | None]
    least: list[float | None]
    most: list[float | None]


class MetricHistory(Answer):
    """Metrics over time. Times are Unix times; the first value is that of `start`."""

    start: float
    end: float
    resolution: int
    series: list[MetricSeries]


class SinkPart(Answer):
    """The part of a sink in a batch. Times are Unix times; the end is the commit of the sink."""

    began: float
    ended: float
    rows: int
    bad: int


class Batch(Answer):
    """A committed batch. `batch` is its number in the state, `entry` that in this list.

    `sinks` has those that this attempt has written, and `rows` is the sum of their rows.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    entry: int
    run: str
    query: str
    batch: int = Field(validation_alias="number")
    began: float
    seconds: float
    phases: dict[str, float]
    sinks: dict[str, SinkPart]
    rows: int
    watermark: float | None = None
    state_rows: int | None = None


class BatchPage(Answer):
    batches: list[Batch]
    next: int | None


class Throughput(Answer):
    """The rows per second of a pipeline by minute. The first value is that of `start`."""

    id: str
    start: int | None
    values: list[float | None]

    @classmethod
    def of(cls, id: str, rates: Sequence[tuple[int, float]]) -> Throughput:
        """Returns the throughput from pairs of a time and a rate; minutes without one have None."""
        if not rates:
            return cls(id=id, start=None, values=[])
        known = {time: _short(rate) for time, rate in rates}
        first, last = rates[0][0], rates[-1][0]
        return cls(id=id, start=first, values=[known.get(t) for t in range(first, last + 1, 60)])


def answer_of(
    rows: Sequence[Row], start: int, end: float, step: int, lag_units: Mapping[str, str]
) -> MetricHistory:
    """Returns the answer with the samples of a pipeline, as one list for each series."""
    samples = dict(rows)
    times = range(start, math.ceil(end), step)
    names = sorted({series for sample in samples.values() for series in sample})
    found = [
        _series(series, [samples.get(each, {}).get(series) for each in times], lag_units)
        for series in names
    ]
    return MetricHistory(start=start, end=end, resolution=step, series=found)


def _series(
    series: Series, values: Sequence[Value | None], lag_units: Mapping[str, str]
) -> MetricSeries:
    unit = UNITS[series.metric]
    return MetricSeries(
        metric=series.metric,
        unit=lag_units.get(series.part, unit) if series.metric == "lag" else unit,
        scope=series.scope,
        name=series.part or None,
        phase=series.phase or None,
        values=[None if each is None else _short(each.value) for each in values],
        least=[None if each is None else _short(each.least) for each in values],
        most=[None if each is None else _short(each.most) for each in values],
    )


def _short(value: float) -> float:
    """Returns a number with six digits: the history has no more."""
    return float(f"{value:.6g}")
