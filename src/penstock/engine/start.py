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
from penstock.engine.build import Builder
from penstock.plan.model import Query

Until = Literal["stopped", "caught_up", "closed"]

_NO_PUSHDOWN = "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates"
_EXCLUDED = "spark.sql.optimizer.excludedRules"


@dataclass
class Running:
    """A started query and the function that runs its batches."""

    query: Query
    spark: StreamingQuery
    runner: BatchRunner


def start(
    builder: Builder,
    query: Query,
    checkpoint: Path,
    events: Events,
    *,
    until: Until,
    trigger: float | str,
) -> Running:
    """Starts one query. With `until` other than `stopped` it ends by itself.

    `closed` runs the batch of the sentinel row (see `engine.source`), for which filters must stay
    above the watermark.
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
            pause = (
                "0 seconds" if trigger == "asap" else f"{round(float(trigger) * 1000)} milliseconds"
            )
            writer = writer.trigger(processingTime=pause)
        else:
            writer = writer.trigger(availableNow=True)
        return Running(query, writer.start(), runner)


@contextmanager
def _settings(session: SparkSession, until: Until) -> Iterator[None]:
    """Settings that a query copies when it starts."""
    if until != "closed":
        yield
        return
    before = session.conf.get(_EXCLUDED, None)
    session.conf.set(_EXCLUDED, f"{before},{_NO_PUSHDOWN}" if before else _NO_PUSHDOWN)
    try:
        yield
    finally:
        if before:
            session.conf.set(_EXCLUDED, before)
        else:
            session.conf.unset(_EXCLUDED)
