"""Routes for machines: health and readiness of the server, and metrics of all pipelines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.responses import JSONResponse, Response

from penstock.observe.prometheus import Measured, run_families
from penstock.runtime.health import HEALTH_STATES
from penstock.server.api.context import TheViews
from penstock.server.api.security import Viewer
from penstock.server.views import Summary, Views

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
        """Yields the health of pipelines, then the metrics of their runs."""
        summaries = self._views.summaries()
        yield states(summaries)
        labels = _labels(summaries)
        yield from run_families(
            Measured(labels[each.id], numbers, each.active)
            for each in summaries
            if (numbers := self._views.numbers(each.id)) is not None
        )


def states(summaries: Sequence[Summary]) -> Metric:
    """Returns the health of pipelines."""
    family = GaugeMetricFamily(
        "penstock_pipeline_state", "The health of a pipeline: 1 for its state, 0 for others.",
        labels=("pipeline", "state"),
    )  # fmt: skip
    labels = _labels(summaries)
    for each in summaries:
        for state in HEALTH_STATES:
            family.add_metric((labels[each.id], state), float(each.health.state == state))
    return family


def _labels(summaries: Sequence[Summary]) -> dict[str, str]:
    """Returns the label of each pipeline: its name, or its file if several have the name."""
    counts = Counter(each.name for each in summaries)
    return {each.id: each.name if counts[each.name] == 1 else each.file for each in summaries}
