"""Series of a pipeline: their names, and their values from two snapshots of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from penstock.observe.prometheus import watermark_delay
from penstock.observe.snapshot import Snapshot

MAX_SERIES = 1000
"""The series of a pipeline that are kept, which bounds the history of very large pipelines."""
MAX_VALUE = 3e38
"""The greatest value of the floats that the store has."""


Metric = Literal[
    "rows_per_second", "bytes_per_second", "dead_letters_per_second", "lag", "batches_per_second",
    "batch_seconds", "phase_seconds", "watermark_delay_seconds", "late_rows_per_second",
    "state_rows", "state_bytes", "restarts_per_second",
]  # fmt: skip
"""The metrics of the history. `batch_seconds` and `phase_seconds` are means per batch."""
GAUGES = frozenset({"lag", "watermark_delay_seconds", "state_rows", "state_bytes"})
OF_NODES = frozenset({"rows_per_second", "bytes_per_second", "dead_letters_per_second", "lag"})


class Series(NamedTuple):
    """A series of numbers over time. `part` is a node, a query or "", `phase` one of a batch.

    A series without a part is that of the whole pipeline.
    """

    metric: Metric
    part: str = ""
    phase: str = ""

    @property
    def is_gauge(self) -> bool:
        """Whether the series is a state, of which the last value counts, and no rate."""
        return self.metric in GAUGES

    @property
    def scope(self) -> Literal["pipeline", "node", "query"]:
        """The kind of the part."""
        if not self.part:
            return "pipeline"
        return "node" if self.metric in OF_NODES else "query"


Counters = dict[Series, float]


@dataclass(frozen=True)
class Baseline:
    """The counters of a pipeline at its last sample, from which rates are computed."""

    began: float
    time: float
    counters: Counters

    @classmethod
    def of(cls, snapshot: Snapshot) -> Baseline | None:
        """Returns the baseline of a snapshot; None for one of an earlier version."""
        began = snapshot.get("began")
        if began is None:
            return None
        return cls(began, began + snapshot["seconds"], dict(_counters(snapshot)))


def sample(snapshot: Snapshot, current: Baseline, earlier: Baseline | None) -> dict[Series, float]:
    """Returns the values of a snapshot: states, and rates since an earlier sample.

    The counters of a run start at 0: the first rate of a run is that since its start.
    """
    values = dict(_states(snapshot))
    if earlier is None or current.began != earlier.began:
        since, before = current.began, Counters()
    else:
        since, before = earlier.time, earlier.counters
    elapsed = max(current.time - since, 0.001)
    grown = {
        series: max(count - before.get(series, 0.0), 0.0)
        for series, count in current.counters.items()
    }
    for series, increase in grown.items():
        if series.metric in ("batch_seconds", "phase_seconds"):
            batches = grown.get(Series("batches_per_second", series.part), 0.0)
            if batches:
                values[series] = increase / batches
        else:
            values[series] = increase / elapsed
    values |= dict(_totals(snapshot, values))
    return {series: min(value, MAX_VALUE) for series, value in list(values.items())[:MAX_SERIES]}


def _totals(snapshot: Snapshot, values: Mapping[Series, float]) -> Iterator[tuple[Series, float]]:
    """Yields the series of the whole pipeline: rows of all sources, dead letters of all nodes."""
    sources = [name for name, node in snapshot["nodes"].items() if node["kind"] == "source"]
    rows = (values.get(Series("rows_per_second", name), 0.0) for name in sources)
    letters = (values.get(Series("dead_letters_per_second", n), 0.0) for n in snapshot["nodes"])
    yield Series("rows_per_second"), sum(rows)
    yield Series("dead_letters_per_second"), sum(letters)


def _states(snapshot: Snapshot) -> Iterator[tuple[Series, float]]:
    for name, query in snapshot["queries"].items():
        if (rows := _number(query, "state_rows")) is not None:
            yield Series("state_rows", name), rows
        if (size := _number(query, "state_bytes")) is not None:
            yield Series("state_bytes", name), size
        if (delay := watermark_delay(query)) is not None:
            yield Series("watermark_delay_seconds", name), max(delay, 0.0)
    for name, node in snapshot["nodes"].items():
        if (lag := _number(node, "lag")) is not None:
            yield Series("lag", name), lag


def _counters(snapshot: Snapshot) -> Iterator[tuple[Series, float]]:
    yield Series("restarts_per_second"), float(snapshot["restarts"])
    for name, query in snapshot["queries"].items():
        yield Series("batches_per_second", name), _number(query, "batches") or 0.0
        yield Series("batch_seconds", name), _number(query, "batch_seconds") or 0.0
        if (late := _number(query, "late_rows")) is not None:
            yield Series("late_rows_per_second", name), late
        for phase, seconds in query.get("phase_seconds", {}).items():
            yield Series("phase_seconds", name, phase), float(seconds)
    for name, node in snapshot["nodes"].items():
        yield Series("dead_letters_per_second", name), float(node["dead_letters"])
        if node["kind"] != "transform":
            yield Series("rows_per_second", name), float(node["rows"])
        if (size := _number(node, "bytes")) is not None:
            yield Series("bytes_per_second", name), size


def _number(facts: Mapping[str, Any], key: str) -> float | None:
    value = facts.get(key)
    return None if value is None else float(value)
