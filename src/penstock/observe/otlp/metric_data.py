"""Metrics of OTLP from metrics of Prometheus, so that both have the same names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric as Family
from prometheus_client.samples import Sample

from penstock.core.version import __version__

SCOPE = InstrumentationScope("penstock", __version__)
Families = Callable[[], Iterable[Family]]
CUMULATIVE = AggregationTemporality.CUMULATIVE


def metrics_data(families: Iterable[Family], resource: Resource, began: int) -> MetricsData:
    """Returns the metrics of a process. `began` is the start of its counters, in nanoseconds."""
    now = time.time_ns()
    metrics = [_metric(family, began, now) for family in families if family.samples]
    scope = ScopeMetrics(SCOPE, metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, began: int, now: int) -> Metric:
    data: Sum | Gauge | Histogram
    if family.type == "histogram":
        data = Histogram(_histograms(family.samples, began, now), CUMULATIVE)
    else:
        points = [
            NumberDataPoint(dict(each.labels), began, now, float(each.value))
            for each in family.samples
        ]
        is_counter = family.type == "counter"
        data = Sum(points, CUMULATIVE, is_monotonic=True) if is_counter else Gauge(points)
    unit = "s" if family.name.endswith("_seconds") else ""
    return Metric(family.name, family.documentation, unit, data)


def _histograms(samples: Sequence[Sample], began: int, now: int) -> list[HistogramDataPoint]:
    """Returns one point for each set of labels. Its buckets are not cumulative."""
    found: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        found.setdefault(tuple(labels.items()), []).append(sample)
    points = []
    for labels_, group in found.items():
        buckets = [each for each in group if "le" in each.labels]
        sums = [each.value for each in group if each.name.endswith("_sum")]
        counts = [0, *(int(each.value) for each in buckets)]
        points.append(
            HistogramDataPoint(
                dict(labels_),
                began,
                now,
                counts[-1],
                sums[0] if sums else 0.0,
                [after - before for before, after in pairwise(counts)],
                [float(each.labels["le"]) for each in buckets[:-1]],
                0.0,
                0.0,
            )
        )
    return points
