"""Routes for machines: health and readiness of the server, and metrics of all pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.responses import JSONResponse, Response

from penstock.runtime.health import HEALTH_STATES
from penstock.server.api.context import TheViews
from penstock.server.api.security import Viewer
from penstock.server.views import Views

router = APIRouter(tags=["monitoring"])
OPEN_PATHS = ("/health", "/ready")
"""The routes that need no right. They reveal nothing about pipelines."""


@router.get("/health")
async def health() -> dict[str, str]:
    """Answers while the server works."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(views: TheViews) -> JSONResponse:
    """Returns whether the server has compared all pipelines once; 503 before."""
    status = views.ready
    return JSONResponse({"ready": status}, 200 if status else 503)


@router.get("/metrics")
def metrics(user: Viewer, views: TheViews) -> Response:
    """Returns the metrics of all pipelines in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(PipelinesCollector(views))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class PipelinesCollector(Collector):
    """A collector of the last status of each pipeline."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def collect(self) -> Iterator[Metric]:
        """Yields the health of pipelines, then the metrics of their nodes and queries."""
        states = GaugeMetricFamily(
            "penstock_pipeline_state", "The health of a pipeline: 1 for its state, 0 for others.",
            labels=("pipeline", "state"),
        )  # fmt: skip
        found: list[tuple[str, dict[str, Any]]] = []
        for each in self._views.summaries():
            for state in HEALTH_STATES:
                states.add_metric((each.name, state), float(each.health.state == state))
            numbers = self._views.numbers(each.id)
            if numbers is not None:
                found.append((each.name, dict(numbers)))
        yield states
        yield from _of_nodes(found)
        yield from _of_queries(found)


def _of_nodes(found: list[tuple[str, dict[str, Any]]]) -> Iterator[Metric]:
    labels = ("pipeline", "node", "kind", "type")
    rows = CounterMetricFamily(
        "penstock_rows", "Rows read by a source or written by a sink.", labels=labels
    )
    letters = CounterMetricFamily("penstock_dead_letters", "Dead letters of a node.", labels=labels)
    lag = GaugeMetricFamily(
        "penstock_lag", "Lag of a source: what not all sinks have written.",
        labels=(*labels, "unit"),
    )  # fmt: skip
    for name, numbers in found:
        for node, flow in numbers["nodes"].items():
            values = (name, node, flow["kind"], flow["type"])
            if flow["kind"] != "transform":
                rows.add_metric(values, flow["rows"])
            letters.add_metric(values, flow["dead_letters"])
            if flow["lag"] is not None:
                lag.add_metric((*values, flow["lag_unit"]), flow["lag"])
    yield from (rows, letters, lag)


def _of_queries(found: list[tuple[str, dict[str, Any]]]) -> Iterator[Metric]:
    labels = ("pipeline", "query")
    rows = GaugeMetricFamily("penstock_state_rows", "Rows in the state.", labels=labels)
    size = GaugeMetricFamily("penstock_state_bytes", "Memory of the state.", labels=labels)
    for name, numbers in found:
        for query, facts in numbers["queries"].items():
            if facts.get("state_rows") is not None:
                rows.add_metric((name, query), facts["state_rows"])
                size.add_metric((name, query), facts.get("state_bytes") or 0)
    yield from (rows, size)
