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
from penstock.plan.model import Query

Until = Literal["stopped", "caught_up", "complete", "closed"]

_NO_PUSHDOWN = "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates"
_EXCLUDED = "spark.sql.optimizer.excludedRules"
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
    `closed` follows: the batch of the sentinel row (see `engine.sentinel`). For `closed`, filters
    must stay above the watermark.
    """
    builder = replace(builder, checkpoint=checkpoint)
    with _settings(builder.session, until):
        frames = builder.build_streams(query)
        late = builder.find_late_rows(query, frames[query.root])
        runner = BatchRunner(builder, query, checkpoint, observer, late)
        writer = (
            frames[query.root]
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
        return StartedQuery(query, writer.start(), runner, sources)


@contextmanager
def _settings(session: SparkSession, until: Until) -> Iterator[None]:
    """Sets session settings that Spark copies into a query at its start."""
    previous = {name: session.conf.get(name, None) for name in (_EXCLUDED, _EMPTY_BATCHES)}
    if until == "complete":
        session.conf.set(_EMPTY_BATCHES, "false")
    if until == "closed":
        session.conf.set(_EXCLUDED, ",".join(filter(None, (previous[_EXCLUDED], _NO_PUSHDOWN))))
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
