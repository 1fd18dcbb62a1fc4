"""Start of the queries of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batch import BatchObserver, BatchRunner
from penstock.engine.build import Builder, source_order
from penstock.engine.checked_queries import has_checks
from penstock.engine.distinct import by_distinct_values
from penstock.engine.idle import IdleSources, IdleTime
from penstock.engine.panes import by_panes
from penstock.engine.watermark import keep_filters_above
from penstock.plan.model import Query
from penstock.plan.queries import stream_sources

Until = Literal["stopped", "caught_up", "complete", "closed"]

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass
class StartedQuery:
    """A started query and its batch function.

    `sources` are in the order of Spark's progress events.
    """

    query: Query
    spark: StreamingQuery
    runner: BatchRunner
    sources: tuple[str, ...]
    idle: IdleSources


def start(
    builder: Builder,
    query: Query,
    checkpoint: Path,
    observer: BatchObserver,
    *,
    until: Until,
    trigger: float,
) -> StartedQuery:
    """Starts a query. With `until` other than `stopped` the query ends by itself.

    `complete` is `caught_up` without the batch for windows closed by the last rows, because
    `closed` follows: the batch of the sentinel row (see `engine.sentinel`). A query that repeats
    the batches of another one has no other batches. A query that ends with `ChecksRequired` must be
    started again.
    """
    checks_rows = builder.checks_rows or has_checks(checkpoint)
    builder = replace(builder, checkpoint=checkpoint, checks_rows=checks_rows)
    without_empty_batches = until == "complete" or (
        query.past_watermarks is not None and until != "closed"
    )
    with _empty_batches(builder.session, not without_empty_batches):
        unchecked = {}
        if checks_rows and builder.has_late_rows(query):
            unchecked = replace(builder, checks_rows=False).build_streams(query)
        frames = builder.build_streams(query)
        late = builder.find_late_rows(query, (unchecked or frames)[query.root])
        watermarks = builder.source_watermarks(query)
        runner = BatchRunner(builder, query, checkpoint, observer, late, watermarks)
        writer = (
            keep_filters_above(by_panes(by_distinct_values(frames[query.root])))
            .writeStream.queryName(query.name)
            .outputMode(query.output_mode)
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(runner)
        )
        if until == "stopped":
            writer = writer.trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        sources = source_order(frames[query.root])
        started = writer.start()
        idle = IdleSources(builder.session, started, sources, _idle_times(builder, query))
        return StartedQuery(query, started, runner, sources, idle)


def _idle_times(builder: Builder, query: Query) -> tuple[IdleTime, ...]:
    """Returns the idle times of the sources of a query; none if they share one watermark."""
    nodes = [builder.plan.nodes[name] for name in query.stream_nodes]
    marked = [node for node in nodes if node.watermark is not None]
    if len(marked) < 2 or query.updating or builder.sentinel_only:
        return ()
    return tuple(
        IdleTime(
            builder.watermark_ids[node.name],
            frozenset(stream_sources(node.name, builder.plan.nodes, builder.plan.streams)),
            node.watermark.idle,
        )
        for node in marked
        if node.watermark is not None and node.watermark.idle is not None
    )


@contextmanager
def _empty_batches(session: SparkSession, enabled: bool) -> Iterator[None]:
    """Sets whether batches without rows close windows. Spark reads the setting at a start."""
    previous = session.conf.get(_EMPTY_BATCHES, None)
    if not enabled:
        session.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        if previous is None:
            session.conf.unset(_EMPTY_BATCHES)
        else:
            session.conf.set(_EMPTY_BATCHES, previous)
