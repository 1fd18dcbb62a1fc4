"""Metrics of runs in the data model of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from penstock.observe.progress import DURATIONS
from penstock.observe.snapshot import Snapshot

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics

BOUNDS = (*(str(bound) for bound in DURATIONS), "+Inf")
_PIPELINE = ("pipeline",)
_NODE = ("pipeline", "node", "kind", "type")
_QUERY = ("pipeline", "query")

Facts = Mapping[str, Any]
"""A node or a query of a snapshot."""


@dataclass(frozen=True)
class Measured:
    """The metrics of a pipeline. `running` is whether they are those of the current run.

    After a run its counters remain, and its gauges end.
    """

    pipeline: str
    snapshot: Snapshot
    running: bool = True


@dataclass(frozen=True)
class _Family:
    """A metric of nodes or queries. A value of None is absent."""

    name: str
    help: str
    value: Callable[[Facts], float | None]


_NODE_COUNTERS = (
    _Family(
        "penstock_rows", "Rows read by a source or written by a sink.",
        lambda node: None if node["kind"] == "transform" else node["rows"],
    ),
    _Family(
        "penstock_bytes",
        "Bytes of the payloads written by a sink. Sinks without payloads have none.",
        lambda node: node["bytes"],
    ),
    _Family(
        "penstock_dead_letters", "Dead letters of a node.", lambda node: node["dead_letters"]
    ),
    _Family(
        "penstock_rows_without_event_time",
        "Rows without an event time, which belong to no window.",
        lambda node: node.get("without_event_time") if node["kind"] != "sink" else None,
    ),
    _Family(
        "penstock_lost_messages",
        "Messages lost by a source whose senders cannot be slowed down.",
        lambda node: node.get("lost") if node["kind"] == "source" else None,
    ),
)  # fmt: skip
_QUERY_GAUGES = (
    _Family("penstock_state_rows", "Rows in the state.", lambda query: query.get("state_rows")),
    _Family("penstock_state_bytes", "Size of the state.", lambda query: query.get("state_bytes")),
    _Family(
        "penstock_watermark_delay_seconds", "Time from the watermark of a query to now.",
        lambda query: watermark_delay(query),
    ),
)  # fmt: skip
_OF_SIDE_OUTPUTS: Mapping[Literal["rows", "batches", "missed", "failures"], str] = {
    "rows": "Rows of the batches that a side output has observed.",
    "batches": "Batches that a side output has observed.",
    "missed": "Batches that were not passed to a side output, or that it failed on.",
    "failures": "Failures of a side output.",
}


def watermark_delay(query: Facts) -> float | None:
    """Returns the time from the watermark of a query to now; None without a watermark."""
    watermark = query.get("watermark")
    return None if watermark is None else time.time() - watermark


def run_families(measured: Iterable[Measured]) -> Iterator[Metric]:
    """Yields the metrics of runs, of their nodes and of their queries.

    Labels are names from the pipeline file, types of connectors, and the `labels` of nodes. Options
    are no labels, because they may hold secrets.
    """
    found = list(measured)
    yield from _of_runs(found)
    yield from _of_nodes(found)
    yield from _of_queries(found)
    yield from _of_side_outputs(found)


def _of_runs(found: list[Measured]) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "penstock_run_info", "The run and the version of Penstock; always 1.",
        labels=("pipeline", "run", "version"),
    )  # fmt: skip
    started = GaugeMetricFamily(
        "penstock_run_start_time_seconds", "Unix time of the start of the run.", labels=_PIPELINE
    )
    restarts = CounterMetricFamily(
        "penstock_restarts", "Restarts of queries after transient failures.", labels=_PIPELINE
    )
    failures = GaugeMetricFamily(
        "penstock_failures", "Queries and sources that have failed permanently.", labels=_PIPELINE
    )
    for each in found:
        numbers, values = each.snapshot, (each.pipeline,)
        if each.running and "began" in numbers:
            info.add_metric((each.pipeline, numbers["run"] or "", numbers["version"]), 1)
            started.add_metric(values, numbers["began"])
        restarts.add_metric(values, numbers["restarts"])
        executions = [*numbers["queries"].values(), *numbers.get("receivers", {}).values()]
        failures.add_metric(values, sum(one["state"] == "failed" for one in executions))
    yield from (info, started, restarts, failures)


def _of_nodes(found: list[Measured]) -> Iterator[Metric]:
    nodes = [(each, name, node) for each in found for name, node in each.snapshot["nodes"].items()]
    further = sorted({label for *_, node in nodes for label in node.get("labels", {})})

    def labels(each: Measured, name: str, node: Facts) -> tuple[str, ...]:
        """Returns the labels of a node; those that only other nodes have are empty."""
        own = node.get("labels", {})
        return (
            each.pipeline, name, node["kind"], node["type"],
            *(own.get(label, "") for label in further),
        )  # fmt: skip

    names = (*_NODE, *further)
    for family in _NODE_COUNTERS:
        counter = CounterMetricFamily(family.name, family.help, labels=names)
        for one in nodes:
            if (value := family.value(one[2])) is not None:
                counter.add_metric(labels(*one), value)
        yield counter
    lag = GaugeMetricFamily(
        "penstock_lag", "Lag of a source: what not all sinks have written.",
        labels=(*names, "unit"),
    )  # fmt: skip
    last = GaugeMetricFamily(
        "penstock_last_batch_time_seconds",
        "Unix time of the last batch with rows of a node.",
        labels=names,
    )
    retained = GaugeMetricFamily(
        "penstock_retained_log_bytes", "Size of the log that a database retains for a source.",
        labels=names,
    )  # fmt: skip
    retained_seconds = GaugeMetricFamily(
        "penstock_retained_log_seconds", "Time of the log that a database retains for a source.",
        labels=names,
    )  # fmt: skip
    for each, name, node in nodes:
        if each.running and (size := node.get("retained")) is not None:
            retained.add_metric(labels(each, name, node), size)
        if each.running and (seconds := node.get("retained_seconds")) is not None:
            retained_seconds.add_metric(labels(each, name, node), seconds)
        if each.running and node["lag"] is not None:
            lag.add_metric((*labels(each, name, node), node["lag_unit"]), node["lag"])
        if node["last_batch"] is not None:
            last.add_metric(labels(each, name, node), node["last_batch"])
    yield from (lag, last, retained, retained_seconds)


def _of_queries(found: list[Measured]) -> Iterator[Metric]:
    queries = [
        (each, name, query) for each in found for name, query in each.snapshot["queries"].items()
    ]
    batches = CounterMetricFamily("penstock_batches", "Batches of a query.", labels=_QUERY)
    durations = HistogramMetricFamily(
        "penstock_batch_duration_seconds", "Durations of the batches of a query.", labels=_QUERY
    )
    phases = CounterMetricFamily(
        "penstock_batch_phase_seconds", "Time that a query has spent in a phase of its batches.",
        labels=(*_QUERY, "phase"),
    )  # fmt: skip
    for each, name, query in queries:
        values = (each.pipeline, name)
        batches.add_metric(values, query.get("batches", 0))
        counts = query.get("batch_durations") or [0] * len(BOUNDS)
        if len(counts) == len(BOUNDS):  # a run of another version may have other bounds
            buckets = list(zip(BOUNDS, accumulate(counts), strict=True))
            durations.add_metric(values, buckets, query.get("batch_seconds", 0.0))
        for phase, seconds in query.get("phase_seconds", {}).items():
            phases.add_metric((*values, phase), seconds)
    yield from (batches, durations, phases)
    for family in _QUERY_GAUGES:
        gauge = GaugeMetricFamily(family.name, family.help, labels=_QUERY)
        for each, name, query in queries:
            if each.running and (value := family.value(query)) is not None:
                gauge.add_metric((each.pipeline, name), value)
        yield gauge
    late = CounterMetricFamily(
        "penstock_late_rows", "Late rows dropped by windows, joins and deduplication.",
        labels=(*_QUERY, "node"),
    )  # fmt: skip
    for each, name, query in queries:
        for node, count in _late_rows(query).items():
            late.add_metric((each.pipeline, name, node), count)
    yield late


def _late_rows(query: Facts) -> Mapping[str, int]:
    """Returns late rows by node; without a node if only Spark counts the rows."""
    if "late_rows" not in query:
        return {}
    by_node: Mapping[str, int] = query["late_rows_by_node"]
    return by_node if query["late_rows_exact"] else {"": query["late_rows"]}


def _of_side_outputs(found: list[Measured]) -> Iterator[Metric]:
    for key, help_ in _OF_SIDE_OUTPUTS.items():
        counter = CounterMetricFamily(
            f"penstock_side_output_{key}", help_, labels=("pipeline", "side_output")
        )
        for each in found:
            for name, numbers in each.snapshot.get("side_outputs", {}).items():
                counter.add_metric((each.pipeline, name), numbers[key])
        yield counter


class RunCollector(Collector):
    """A collector of the metrics of one run. Each scrape reads the metrics once."""

    def __init__(self, pipeline: str, metrics: Metrics) -> None:
        self._pipeline, self._metrics = pipeline, metrics

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of the run, of its nodes and of its queries."""
        return run_families([Measured(self._pipeline, self._metrics.snapshot())])


def make_registry(pipeline: str, metrics: Metrics) -> CollectorRegistry:
    """Returns a registry with the metrics of one run, and nothing of this process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunCollector(pipeline, metrics))
    return registry
