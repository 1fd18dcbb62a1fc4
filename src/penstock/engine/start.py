"""Starting the queries of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batch import BatchRunner, Events
from penstock.engine.build import Builder, source_order
from penstock.plan.model import Query

Until = Literal["stopped", "caught_up", "complete", "closed"]

_NO_PUSHDOWN = "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates"
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass
class Running:
    """A started query and the function that runs its batches.

    `sources` are in the order of Spark's progress reports.
    """

    query: Query
    spark: StreamingQuery
    runner: BatchRunner
    sources: tuple[str, ...]


def start(
    builder: Builder,
    query: Query,
    checkpoint: Path,
    events: Events,
    *,
    until: Until,
    trigger: float,
) -> Running:
    """Starts one query. With `until` other than `stopped` it ends by itself.

    `complete` is `caught_up` without the batch for the windows that the last rows have closed,
    since `closed` follows: the batch of the sentinel row (see `engine.sentinel`), for which filters
    must stay above the watermark.
    """
    runner = BatchRunner(builder, query, checkpoint, events)
    with _settings(builder.session, until):
        frames = builder.streaming(query)
        writer = (
            frames[query.trunk]
            .writeStream.queryName(query.name)
            .outputMode(query.output_mode)
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(runner)
        )
        if until == "stopped":
            writer = writer.trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        sources = source_order(frames[query.trunk])
        return Running(query, writer.start(), runner, sources)


@contextmanager
def _settings(session: SparkSession, until: Until) -> Iterator[None]:
    """Settings that a query copies when it starts."""
    before = {name: session.conf.get(name, None) for name in (_EXCLUDED, _EMPTY_BATCHES)}
    if until == "complete":
        session.conf.set(_EMPTY_BATCHES, "false")
    if until == "closed":
        session.conf.set(_EXCLUDED, ",".join(filter(None, (before[_EXCLUDED], _NO_PUSHDOWN))))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
