"""Routes of metrics over time: the history of a pipeline, its batches, and throughput of all."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query

from penstock.core.units import PositiveDuration
from penstock.server.api.context import TheHistory, TheViews
from penstock.server.api.metric_models import Batch, BatchPage, MetricHistory, Throughput, answer_of
from penstock.server.api.models import Number
from penstock.server.api.security import Viewer
from penstock.server.history.levels import MAX_WINDOW, bucket, resolution_of
from penstock.server.history.sampling import Metric, Series

router = APIRouter(tags=["metrics"])
MAX_POINTS = 1000
Window = Annotated[PositiveDuration, Query(ge=60, le=MAX_WINDOW, description="As 15m or 30d.")]
Resolution = Annotated[
    PositiveDuration | None, Query(description="The distance of values; by default that of 200.")
]
Names = Annotated[list[Metric] | None, Query(description="The metrics; by default all.")]
Part = Annotated[str | None, Query(description="A node or a query; by default all.")]
End = Annotated[
    float | None, Query(ge=0, le=1e11, description="A Unix time; by default now.")
]  # fmt: skip


@router.get("/pipelines/{id}/metrics")
def show_metrics(
    id: str, user: Viewer, views: TheViews, history: TheHistory, window: Window = 3600.0,
    resolution: Resolution = None, end: End = None, series: Names = None, part: Part = None,
) -> MetricHistory:  # fmt: skip
    """Returns the metrics of a pipeline over time, of up to 30 days.

    Values have equal distances. A step without a sample, as while the pipeline does not run, has
    null. `least` and `most` are the extremes within a step.
    """
    pipeline = views.summary(id).id
    now = time.time()
    until = now if end is None else end
    wished = resolution and max(resolution, window / MAX_POINTS)
    step = resolution_of(window, wished, now - until + window)
    start = bucket(until - window, step)

    def wanted(each: Series) -> bool:
        return (series is None or each.metric in series) and part in (None, each.part)

    rows = history.read(pipeline, start, until, step, wanted)
    numbers = views.numbers(id)
    units = {name: node["lag_unit"] for name, node in numbers["nodes"].items()} if numbers else {}
    return answer_of(rows, start, until, step, units)


@router.get("/pipelines/{id}/batches")
def list_batches(
    id: str, user: Viewer, views: TheViews, query: str | None = None, before: Number | None = None,
    limit: int = Query(50, ge=1, le=500),
) -> BatchPage:  # fmt: skip
    """Returns the last batches of a pipeline or of a query, or those before an entry, last first.

    `next` is the value of `before` of the next page; null at the end.
    """
    found = views.batches(id, query=query, before=before, limit=limit + 1)
    batches = [Batch.model_validate(each) for each in found[:limit]]
    return BatchPage(batches=batches, next=batches[-1].entry if len(found) > limit else None)


@router.get("/throughput")
def list_throughput(user: Viewer, views: TheViews, history: TheHistory) -> list[Throughput]:
    """Returns the rows per second that each pipeline has read in the last hour, by minute."""
    found, known = history.throughput(), {each.id for each in views.summaries()}
    return [Throughput.of(id, values) for id, values in found.items() if id in known]
