"""Metrics of a run in the data model of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from penstock.core.version import __version__
from penstock.observe.late import LateCount
from penstock.observe.metrics import Metrics
from penstock.observe.progress import DURATIONS, QueryProgress
from penstock.observe.snapshot import SideOutputSnapshot

_BOUNDS = (*(str(bound) for bound in DURATIONS), "+Inf")
Flow = Mapping[str, Any]
"""The metrics of a node in `Metrics.snapshot`."""
_NODE = ("pipeline", "node", "kind", "type")
_COUNTERS: tuple[tuple[str, str, Callable[[Flow], int | None]], ...] = (
    (
        "penstock_rows",
        "Rows read by a source or written by a sink.",
        lambda flow: None if flow["kind"] == "transform" else flow["rows"],
    ),
    (
        "penstock_bytes",
        "Bytes of the payloads written by a sink. Sinks without payloads have none.",
        lambda flow: flow["bytes"],
    ),
    ("penstock_dead_letters", "Dead letters of a node.", lambda flow: flow["dead_letters"]),
    (
        "penstock_rows_without_event_time",
        "Rows without an event time, which belong to no window.",
        lambda flow: flow["without_event_time"] if flow["kind"] != "sink" else None,
    ),
    (
        "penstock_lost_messages",
        "Messages lost by a source whose senders cannot be slowed down.",
        lambda flow: flow["lost"] if flow["kind"] == "source" else None,
    ),
)
_OF_SIDE_OUTPUTS: Mapping[Literal["rows", "batches", "missed", "failures"], str] = {
    "rows": "Rows of the batches that a side output has observed.",
    "batches": "Batches that a side output has observed.",
    "missed": "Batches that were not passed to a side output, or that it failed on.",
    "failures": "Failures of a side output.",
}


class RunCollector(Collector):
    """A collector of the metrics of one run. Each scrape reads the metrics once.

    Labels are names from the pipeline file, types of connectors, and the `labels` of nodes. Options
    are no labels, because they may hold secrets.
    """

    def __init__(
        self, pipeline: str, run: str, metrics: Metrics, labels: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._pipeline, self._run, self._metrics = pipeline, run, metrics
        self._labels = labels
        self._names = tuple(sorted({name for each in labels.values() for name in each}))

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of the run, of its nodes and of its queries."""
        yield from self._run_metrics()
        snapshot = self._metrics.snapshot()
        yield from self._node_metrics(snapshot["nodes"])
        queries = dict(self._metrics.progress)
        yield from self._batch_metrics(queries)
        yield from self._state_metrics(queries)
        yield self._late_rows(dict(self._metrics.late))
        yield from self._side_output_metrics(snapshot["side_outputs"])

    def _run_metrics(self) -> Iterator[Metric]:
        labels, values = ("pipeline",), (self._pipeline,)
        info = GaugeMetricFamily(
            "penstock_run_info", "The run and the version of Penstock; always 1.",
            labels=("pipeline", "run", "version"),
        )  # fmt: skip
        info.add_metric((self._pipeline, self._run, __version__), 1)
        yield info
        started = GaugeMetricFamily(
            "penstock_run_start_time_seconds", "Unix time of the start of the run.", labels=labels
        )
        started.add_metric(values, self._metrics.began)
        yield started
        restarts = CounterMetricFamily(
            "penstock_restarts", "Restarts of queries after transient failures.", labels=labels
        )
        restarts.add_metric(values, self._metrics.restarts)
        yield restarts
        failures = GaugeMetricFamily(
            "penstock_failures", "Queries and sources that have failed permanently.", labels=labels
        )
        failures.add_metric(values, len(self._metrics.failures))
        yield failures

    def _node_metrics(self, flows: Mapping[str, Flow]) -> Iterator[Metric]:
        for metric, help_, value in _COUNTERS:
            counter = CounterMetricFamily(metric, help_, labels=(*_NODE, *self._names))
            for name, flow in flows.items():
                if (number := value(flow)) is not None:
                    counter.add_metric(self._node(name, flow), number)
            yield counter
        lag = GaugeMetricFamily(
            "penstock_lag", "Lag of a source: what not all sinks have written.",
            labels=(*_NODE, *self._names, "unit"),
        )  # fmt: skip
        last = GaugeMetricFamily(
            "penstock_last_batch_time_seconds", "Unix time of the last batch with rows of a node.",
            labels=(*_NODE, *self._names),
        )  # fmt: skip
        for name, flow in flows.items():
            if flow["lag"] is not None:
                lag.add_metric((*self._node(name, flow), flow["lag_unit"]), flow["lag"])
            if flow["last_batch"] is not None:
                last.add_metric(self._node(name, flow), flow["last_batch"])
        yield lag
        yield last

    def _node(self, name: str, flow: Flow) -> tuple[str, ...]:
        """Returns the labels of a node; those that only other nodes have are empty."""
        own = self._labels.get(name, {})
        further = (own.get(each, "") for each in self._names)
        return self._pipeline, name, flow["kind"], flow["type"], *further

    def _batch_metrics(self, queries: Mapping[str, QueryProgress]) -> Iterator[Metric]:
        labels = ("pipeline", "query")
        batches = CounterMetricFamily("penstock_batches", "Batches of a query.", labels=labels)
        durations = HistogramMetricFamily(
            "penstock_batch_duration_seconds", "Durations of the batches of a query.", labels=labels
        )
        for name, query in queries.items():
            batches.add_metric((self._pipeline, name), query.batches)
            counts = accumulate(query.durations)
            buckets = list(zip(_BOUNDS, counts, strict=True))
            durations.add_metric((self._pipeline, name), buckets, query.seconds)
        yield batches
        yield durations

    def _state_metrics(self, queries: Mapping[str, QueryProgress]) -> Iterator[Metric]:
        labels, now = ("pipeline", "query"), time.time()
        delay = GaugeMetricFamily(
            "penstock_watermark_delay_seconds", "Time from the watermark of a query to now.",
            labels=labels,
        )  # fmt: skip
        rows = GaugeMetricFamily("penstock_state_rows", "Rows in the state.", labels=labels)
        size = GaugeMetricFamily("penstock_state_bytes", "Size of the state.", labels=labels)
        for name, query in queries.items():
            values = (self._pipeline, name)
            if query.watermark is not None:
                delay.add_metric(values, now - query.watermark)
            if (state := self._metrics.state(name)) is not None:
                rows.add_metric(values, state.rows)
                size.add_metric(values, state.bytes)
        yield from (delay, rows, size)

    def _side_output_metrics(self, observed: Mapping[str, SideOutputSnapshot]) -> Iterator[Metric]:
        for key, help_ in _OF_SIDE_OUTPUTS.items():
            counter = CounterMetricFamily(
                f"penstock_side_output_{key}", help_, labels=("pipeline", "side_output")
            )
            for name, numbers in observed.items():
                counter.add_metric((self._pipeline, name), numbers[key])
            yield counter

    def _late_rows(self, queries: Mapping[str, LateCount]) -> Metric:
        """Returns late rows by query and node; without a node if only Spark counts the rows."""
        counter = CounterMetricFamily(
            "penstock_late_rows", "Late rows dropped by windows, joins and deduplication.",
            labels=("pipeline", "query", "node"),
        )  # fmt: skip
        for name, late in queries.items():
            nodes = dict(late.nodes) if late.exact else {"": late.total}
            for node, count in nodes.items():
                counter.add_metric((self._pipeline, name, node), count)
        return counter


def make_registry(
    pipeline: str, run: str, metrics: Metrics, labels: Mapping[str, Mapping[str, str]]
) -> CollectorRegistry:
    """Returns a registry with the metrics of one run, and nothing of this process.

    `labels` are further labels of nodes by their names.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunCollector(pipeline, run, metrics, labels))
    return registry
